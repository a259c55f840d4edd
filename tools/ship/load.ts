import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { callJson, jsonRequest } from '#platform/callers.ts';
import { FriendlyError } from '#platform/errors.ts';
import { eventually } from '#platform/waiting.ts';

export interface Addresses {
  readonly auth: string;
  readonly settings: string;
  readonly task: string;
  /** The ledger of what was completed. */
  readonly receiver: string;
}

export interface Application {
  readonly applicationKey: string;
  readonly sharedSecret: string;
  readonly userName: string;
}

const INTERNAL_PARTNER = 1;
const REQUEST_TIMEOUT_MS = 15_000;
const SETTLED_TIMEOUT_MS = 60_000;
const PAUSE_MS = 20;
const WRITERS = 3;
const PLANNERS = 3;
const SHOWN_FAILURES = 5;

/** Callers of all three services, each request on a connection of its own, and none of them may fail. */
export class Load {
  readonly #urls: Addresses;
  readonly #application: Application;
  readonly #settings = new Map<string, string>();
  readonly #completed = new Set<string>();
  readonly #schedules = new Set<string>();
  readonly #failures: string[] = [];
  #requests = 0;
  #token = '';
  #isOver = false;
  #workers: Promise<void>[] = [];

  constructor(urls: Addresses, application: Application) {
    this.#urls = urls;
    this.#application = application;
  }

  async start(): Promise<void> {
    await this.#signIn();
    const repeat = async (step: (count: number) => Promise<void>): Promise<void> => {
      for (let count = 0; !this.#isOver; count += 1) {
        await step(count).catch((error: unknown) => this.#failures.push(String(error)));
        await delay(PAUSE_MS);
      }
    };
    this.#workers = [
      ...Array.from({ length: WRITERS }, (_, worker) => repeat((count) => this.#writeAndRead(worker, count))),
      ...Array.from({ length: PLANNERS }, (_, worker) =>
        repeat((count) => this.#planAndComplete(worker, count)),
      ),
      repeat(() => this.#signIn()),
    ];
  }

  /** Lets the callers finish what they have begun. */
  async end(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#workers);
  }

  /** Looks for everything that was acknowledged. @throws {FriendlyError} for a failed request and for what is lost or there twice */
  async verify(): Promise<void> {
    if (this.#failures.length > 0) {
      const shown = this.#failures.slice(0, SHOWN_FAILURES).join('; ');
      throw new FriendlyError(`${this.#failures.length} of ${this.#requests} requests failed: ${shown}`);
    }
    for (const [name, value] of this.#settings) {
      const read = await this.#call('GET', `${settingUrl(this.#urls, name)}/value`);
      if (read !== value)
        throw new FriendlyError(
          `The setting ${name} is ${String(read)}, but ${value} was acknowledged last.`,
        );
    }
    for (const schedule of this.#schedules)
      await eventually(
        async () => {
          if ((await this.#instances(schedule)).length === 0)
            throw new FriendlyError(`Schedule ${schedule} has no instances.`);
        },
        { timeoutMs: SETTLED_TIMEOUT_MS },
      );
    await eventually(() => this.#compareCompletions(), { timeoutMs: SETTLED_TIMEOUT_MS, intervalMs: 500 });
  }

  /** `1,234 requests, 55 schedules, 40 completions`. */
  summary(): string {
    return `${this.#requests.toLocaleString('en')} requests, ${this.#schedules.size} schedules, ${this.#completed.size} completed tasks, 0 failures`;
  }

  async #signIn(): Promise<void> {
    const body = { ...this.#application, persona: INTERNAL_PARTNER };
    const tokens = (await this.#call('POST', `${this.#urls.auth}/auth/token/trust-simple`, { body })) as {
      accessToken: string;
    };
    this.#token = tokens.accessToken;
  }

  async #writeAndRead(worker: number, count: number): Promise<void> {
    const name = `writer-${worker}`;
    const value = `${count}-${randomUUID()}`;
    await this.#call('PUT', settingUrl(this.#urls, name), { body: { settingValue: value } });
    this.#settings.set(name, value);
    const read = await this.#call('GET', `${settingUrl(this.#urls, name)}/value`);
    if (read !== value)
      throw new Error(`${name} was read as ${String(read)} after ${value} was acknowledged`);
  }

  async #planAndComplete(worker: number, count: number): Promise<void> {
    // A facility may have a thousand active schedules.
    const facilityId = 30_000 + PLANNERS * (count % 100) + worker;
    const body = { facilityId, name: 'Ship', schedule: '0 6 * * *', timeZone: 'UTC' };
    const headers = { 'idempotency-key': randomUUID() };
    const { scheduleId } = (await this.#call('POST', `${this.#urls.task}/Schedules`, { body, headers })) as {
      scheduleId: string;
    };
    this.#schedules.add(scheduleId);
    const [first] = await eventually(
      async () => {
        const found = await this.#instances(scheduleId);
        if (found.length === 0) throw new Error(`schedule ${scheduleId} has no instances yet`);
        return found;
      },
      { timeoutMs: SETTLED_TIMEOUT_MS, intervalMs: 100 },
    );
    const taskInstanceId = first?.taskInstanceId ?? '';
    await this.#call('POST', `${this.#urls.task}/Instances/${taskInstanceId}/commands/complete`);
    this.#completed.add(taskInstanceId);
  }

  async #instances(scheduleId: string): Promise<{ taskInstanceId: string }[]> {
    const url = `${this.#urls.task}/Instances?scheduleId=${scheduleId}&pageSize=1`;
    return ((await this.#call('GET', url)) as { instances: { taskInstanceId: string }[] }).instances;
  }

  /** Each completion was heard once, and no other. */
  async #compareCompletions(): Promise<void> {
    const url = `${this.#urls.receiver}/completions?limit=10000`;
    const { completions } = await callJson<{ completions: { record: { taskInstanceId: string } }[] }>(
      'GET',
      url,
    );
    const heard = completions.map(({ record }) => record.taskInstanceId);
    const missing = [...this.#completed].filter((id) => !heard.includes(id)).length;
    const twice = heard.length - new Set(heard).size;
    if (missing + twice > 0)
      throw new FriendlyError(`${missing} completions were never heard of, ${twice} twice.`);
  }

  async #call(
    method: 'GET' | 'PUT' | 'POST',
    url: string,
    { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<unknown> {
    this.#requests += 1;
    const what = `${method} ${new URL(url).pathname.replaceAll(/[\da-f-]{36}/g, '…')}`;
    const response = await fetch(url, {
      method,
      // Services know connections, not requests: one request each, so that none is on its way when a server closes an idle one.
      ...jsonRequest({ token: this.#token, body, headers: { connection: 'close', ...headers } }),
      signal: AbortSignal.timeout(REQUEST_TIMEOUT_MS),
    }).catch((error: unknown) => {
      const { message, cause } = error as Error & { cause?: { code?: string } };
      throw new Error(`${what}: ${cause?.code ?? message}`, { cause: error });
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${what}: ${response.status} ${text.slice(0, 200)}`);
    return text === '' ? null : (JSON.parse(text) as unknown);
  }
}

function settingUrl({ settings }: Addresses, name: string): string {
  return `${settings}/platform/v1/subsystems/ship/settings/${name}`;
}
