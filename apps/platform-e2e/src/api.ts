import { randomUUID } from 'node:crypto';
import { callJson, type JsonCall, jsonRequest } from '#platform/callers.ts';
import { DEVELOPMENT_PASSWORD } from '#platform/environments.ts';

/** An access token of a development identity, by its password. */
export async function logIn(
  authUrl: string,
  user: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<string> {
  const body = { user, password: DEVELOPMENT_PASSWORD };
  const call = { body, headers };
  return (await callJson<{ accessToken: string }>('POST', `${authUrl}/auth/token/user`, call)).accessToken;
}

export interface Instance {
  taskInstanceId: string;
  scheduleId: string;
  dueAtUtc: string;
  status: string;
}

/** The task service at one address, for one caller. */
export class TaskApi {
  constructor(
    private readonly url: string,
    private readonly token: string,
    private readonly headers: Readonly<Record<string, string>> = {},
  ) {}

  async createSchedule(idempotencyKey: string = randomUUID(), facilityId = 501): Promise<string> {
    const answer = await this.send('POST', '/Schedules', {
      body: { facilityId, name: 'Journey', schedule: '0 6 * * *', timeZone: 'UTC' },
      headers: { 'idempotency-key': idempotencyKey },
    });
    if (answer.status !== 201) throw new Error(`POST /Schedules answered ${String(answer.status)}`);
    return ((await answer.json()) as { scheduleId: string }).scheduleId;
  }

  async instances(scheduleId: string): Promise<Instance[]> {
    const answer = await this.send('GET', `/Instances?scheduleId=${scheduleId}&pageSize=1000`);
    if (answer.status !== 200) throw new Error(`GET /Instances answered ${String(answer.status)}`);
    return ((await answer.json()) as { instances: Instance[] }).instances;
  }

  complete(taskInstanceId: string): Promise<Response> {
    return this.send('POST', `/Instances/${taskInstanceId}/commands/complete`);
  }

  private send(method: string, path: string, { headers, ...call }: JsonCall = {}): Promise<Response> {
    const all = { ...this.headers, ...headers };
    return fetch(`${this.url}${path}`, {
      method,
      ...jsonRequest({ ...call, token: this.token, headers: all }),
    });
  }
}

/** A replica of the task service as callers see it. */
export interface Target {
  url: string;
  /** False while its readiness says so, as a load balancer would know. */
  isReady: boolean;
}

/** Schedules of one worker that have no completed instance yet: more than these, and it creates no others. */
const MAX_WAITING = 5;
const ATTEMPTS = 200;

/**
 * Callers that create schedules and complete the first instance of each, and take down what was acknowledged.
 * The load of `verification/traffic` has one address for each service, behind a balancer. These choose a
 * replica themselves.
 *
 * Half of them ask ready replicas only, as behind a load balancer: of these no request may fail, save for a
 * connection refused. The others go to any replica, to its last moment and after it. A connection that the
 * system took for a process which closed its port before it could is reset, so these ask again after that,
 * too. Each request has a connection of its own: one kept alive may be closed by the server while the next
 * request is on its way, about which HTTP can do nothing.
 */
export class Workload {
  /** Ids of schedules by the idempotency key they were asked for with. */
  readonly schedules = new Map<string, string>();
  readonly completions = new Set<string>();
  /** How often a request had to go to another replica, by the reason. */
  readonly retries = new Map<string, number>();
  private isOver = false;
  private readonly workers: Promise<void>[];

  constructor(
    private readonly targets: readonly Target[],
    private readonly token: string,
    workers: number,
  ) {
    this.workers = Array.from({ length: workers }, (_, index) => this.work(index % 2 === 0));
    // Whoever waits for finish() is told; until then a failure is not unhandled.
    for (const worker of this.workers) worker.catch(() => undefined);
  }

  /** Lets the workers complete what they have created. @throws {Error} the first that any of them met */
  async finish(): Promise<void> {
    this.isOver = true;
    await Promise.all(this.workers);
  }

  private async work(heedsReadiness: boolean): Promise<void> {
    const waiting: string[] = [];
    while (!this.isOver || waiting.length > 0) {
      if (!this.isOver && waiting.length < MAX_WAITING) waiting.push(await this.create(heedsReadiness));
      const [oldest] = waiting;
      if (oldest !== undefined && (await this.completeFirst(oldest, heedsReadiness))) waiting.shift();
    }
  }

  private async create(heedsReadiness: boolean): Promise<string> {
    const key = randomUUID();
    const scheduleId = await this.ask(heedsReadiness, (api) => api.createSchedule(key));
    this.schedules.set(key, scheduleId);
    return scheduleId;
  }

  /** @returns false when the schedule has no instances yet */
  private async completeFirst(scheduleId: string, heedsReadiness: boolean): Promise<boolean> {
    const [instance] = await this.ask(heedsReadiness, (api) => api.instances(scheduleId));
    if (instance === undefined) return false;
    const { taskInstanceId } = instance;
    const { status } = await this.ask(heedsReadiness, (api) => api.complete(taskInstanceId));
    if (status !== 200) throw new Error(`completing answered ${String(status)}`);
    this.completions.add(taskInstanceId);
    return true;
  }

  /** Asks one replica after another until one takes the request. */
  private async ask<T>(heedsReadiness: boolean, request: (api: TaskApi) => Promise<T>): Promise<T> {
    const permitted = heedsReadiness ? ['ECONNREFUSED'] : ['ECONNREFUSED', 'ECONNRESET', 'UND_ERR_SOCKET'];
    let turn = Math.floor(Math.random() * this.targets.length);
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1, turn += 1) {
      const candidates = this.targets.filter(({ isReady }) => isReady || !heedsReadiness);
      const target = candidates[turn % candidates.length];
      if (target === undefined) throw new Error('no replica is ready');
      try {
        return await request(new TaskApi(target.url, this.token, { connection: 'close' }));
      } catch (error) {
        const code = connectionErrorCode(error);
        if (code === null || !permitted.includes(code)) throw error;
        this.retries.set(code, (this.retries.get(code) ?? 0) + 1);
      }
    }
    throw new Error(`no replica took a request in ${String(ATTEMPTS)} attempts`);
  }
}

/**
 * The code of the failed connection behind an error of fetch; null for other errors. Jest's tests have an
 * `Error` of their own, of which fetch's are no instances.
 */
function connectionErrorCode(error: unknown): string | null {
  const code = (error as { cause?: { code?: unknown } } | null)?.cause?.code;
  return typeof code === 'string' ? code : null;
}
