import { makeAccessToken } from '#platform/environments.ts';
import { NEIGHBOURS, type ServiceName } from '#platform/programs.ts';
import { type PersonaName, PERSONAS } from '../generate/personas.ts';
import { Connections } from '../http/connections.ts';
import { type Platform, SERVICE_NAMES } from '../platform.ts';

/** One answer in JSON. */
export interface Answered<T> {
  readonly status: number;
  readonly value: T;
}

type Destination = ServiceName | 'customers';

/** One in so many requests has a connection of its own. */
const CHURN = 10;
const TIMEOUT_MS = 30_000;

/** Sends ordinary requests, some of them over connections that nobody uses again. */
export class Caller {
  readonly #platform: Platform;
  readonly #connections: Readonly<Record<Destination, Connections>>;
  readonly statuses = new Map<number, number>();
  sent = 0;

  constructor(platform: Platform) {
    this.#platform = platform;
    const { ports } = platform.settings;
    const customers = NEIGHBOURS.find(({ name }) => name === 'customers')?.port ?? 'customers';
    const entries = [...SERVICE_NAMES, customers].map((name) => [name, new Connections(ports[name])]);
    this.#connections = Object.fromEntries(entries) as Record<Destination, Connections>;
  }

  get connectionsOpened(): number {
    return Object.values(this.#connections).reduce((sum, { opened }) => sum + opened, 0);
  }

  /** @param body JSON text as it is when it is text @throws {Error} when no answer comes, or one of 500 and above */
  async send<T = Record<string, unknown>>(
    to: Destination,
    method: string,
    path: string,
    { body, as = 'internal' }: { body?: unknown; as?: PersonaName | null } = {},
  ): Promise<Answered<T>> {
    this.sent += 1;
    const content = Buffer.from(
      body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body),
    );
    const lines = [`${method} ${path} HTTP/1.1`, 'Host: 127.0.0.1', `Content-Length: ${content.length}`];
    if (body !== undefined) lines.push('Content-Type: application/json');
    if (as !== null)
      lines.push(`Authorization: Bearer ${makeAccessToken(this.#platform.settings, PERSONAS[as])}`);
    const bytes = Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), content]);
    const isAlone = this.sent % CHURN === 0;
    const options = { isHead: false, timeoutMs: TIMEOUT_MS, isAlone, closesWriting: false };
    const outcome = await this.#connections[to].send(bytes, options);
    if (outcome.kind !== 'answered') throw new Error(`${method} ${path}: ${outcome.kind}`);
    const { status, body: text } = outcome.answer;
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    if (status >= 500) throw new Error(`${method} ${path} answered ${status}: ${text.slice(0, 200)}`);
    return { status, value: (text === '' ? null : JSON.parse(text)) as T };
  }

  /** Closes the connections kept, as a caller that pauses does. */
  closeIdle(): void {
    for (const connections of Object.values(this.#connections)) connections.close();
  }
}
