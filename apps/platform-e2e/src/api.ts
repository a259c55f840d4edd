import { randomUUID } from 'node:crypto';
import { callJson, type JsonCall, jsonRequest } from '#platform/callers.ts';
import { DEVELOPMENT_PASSWORD } from '#platform/environments.ts';

/** Signs a development identity in with its password and returns the access token. */
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

/** A client of the task service at one address, for one caller. */
export class TaskApi {
  constructor(
    private readonly url: string,
    private readonly token: string,
    private readonly headers: Readonly<Record<string, string>> = {},
  ) {}

  async createSchedule(idempotencyKey: string = randomUUID(), facilityId = 501): Promise<string> {
    const response = await this.send('POST', '/Schedules', {
      body: { facilityId, name: 'Journey', schedule: '0 6 * * *', timeZone: 'UTC' },
      headers: { 'idempotency-key': idempotencyKey },
    });
    if (response.status !== 201) throw new Error(`POST /Schedules responded ${String(response.status)}`);
    return ((await response.json()) as { scheduleId: string }).scheduleId;
  }

  async instances(scheduleId: string): Promise<Instance[]> {
    const response = await this.send('GET', `/Instances?scheduleId=${scheduleId}&pageSize=1000`);
    if (response.status !== 200) throw new Error(`GET /Instances responded ${String(response.status)}`);
    return ((await response.json()) as { instances: Instance[] }).instances;
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

/** A replica of the task service from a caller's point of view. */
export interface Target {
  url: string;
  /** Whether the replica is ready, which a load balancer would know. */
  isReady: boolean;
}

/** Maximum schedules per worker without a completed instance. Beyond it the worker creates no more. */
const MAX_WAITING = 5;
const ATTEMPTS = 200;

/**
 * Callers that create schedules, complete the first instance of each, and record what was acknowledged.
 * Unlike the load of `verification/traffic`, which has one address per service behind a balancer, they choose
 * a replica themselves.
 *
 * Half of the callers use only ready replicas, like a load balancer. None of their requests may fail, except
 * by a refused connection. The others use any replica, even one that is stopping or stopped. The system may
 * accept a connection for a process just before that process closes its port, and then reset it, so these
 * callers also retry after a reset. Each request uses a new connection: a server may close a kept-alive
 * connection while the next request is in flight, which HTTP cannot prevent.
 */
export class Workload {
  /** Ids of schedules by the idempotency key of the request that created them. */
  readonly schedules = new Map<string, string>();
  readonly completions = new Set<string>();
  /** Number of retries at another replica, by reason. */
  readonly retries = new Map<string, number>();
  private isOver = false;
  private readonly workers: Promise<void>[];

  constructor(
    private readonly targets: readonly Target[],
    private readonly token: string,
    workers: number,
  ) {
    this.workers = Array.from({ length: workers }, (_, index) => this.work(index % 2 === 0));
    // finish() reports failures. Until then they must not count as unhandled.
    for (const worker of this.workers) worker.catch(() => undefined);
  }

  /**
   * Lets the workers complete the schedules they have created.
   * @throws {Error} the first error of any worker
   */
  async finish(): Promise<void> {
    this.isOver = true;
    await Promise.all(this.workers);
  }

  private async work(onlyReady: boolean): Promise<void> {
    const waiting: string[] = [];
    while (!this.isOver || waiting.length > 0) {
      if (!this.isOver && waiting.length < MAX_WAITING) waiting.push(await this.create(onlyReady));
      const [oldest] = waiting;
      if (oldest !== undefined && (await this.completeFirst(oldest, onlyReady))) waiting.shift();
    }
  }

  private async create(onlyReady: boolean): Promise<string> {
    const key = randomUUID();
    const scheduleId = await this.send(onlyReady, (api) => api.createSchedule(key));
    this.schedules.set(key, scheduleId);
    return scheduleId;
  }

  /**
   * Completes the first instance of a schedule.
   * @returns false if the schedule has no instances yet
   */
  private async completeFirst(scheduleId: string, onlyReady: boolean): Promise<boolean> {
    const [instance] = await this.send(onlyReady, (api) => api.instances(scheduleId));
    if (instance === undefined) return false;
    const { taskInstanceId } = instance;
    const { status } = await this.send(onlyReady, (api) => api.complete(taskInstanceId));
    if (status !== 200) throw new Error(`completing responded ${String(status)}`);
    this.completions.add(taskInstanceId);
    return true;
  }

  /** Sends a request to one replica after another until one accepts it. */
  private async send<T>(onlyReady: boolean, request: (api: TaskApi) => Promise<T>): Promise<T> {
    const permitted = onlyReady ? ['ECONNREFUSED'] : ['ECONNREFUSED', 'ECONNRESET', 'UND_ERR_SOCKET'];
    let turn = Math.floor(Math.random() * this.targets.length);
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1, turn += 1) {
      const candidates = this.targets.filter(({ isReady }) => isReady || !onlyReady);
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
    throw new Error(`no replica accepted a request in ${String(ATTEMPTS)} attempts`);
  }
}

/**
 * Returns the error code of the failed connection behind an error of fetch, or null for other errors. Does
 * not use `instanceof`, because errors of fetch are not instances of Jest's own `Error`.
 */
function connectionErrorCode(error: unknown): string | null {
  const code = (error as { cause?: { code?: unknown } } | null)?.cause?.code;
  return typeof code === 'string' ? code : null;
}
