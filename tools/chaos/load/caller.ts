import { once } from 'node:events';
import { type IncomingMessage, request as httpRequest } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '#platform/random.ts';
import type { Journal } from './journal.ts';

/** A response that nobody should have got. */
export interface Unexpected {
  readonly operation: string;
  /** A status, or what became of the connection. */
  readonly outcome: string;
  readonly during: string;
  readonly detail: string;
}

const MAX_DETAILS = 200;
/** Kinds of requests that come often enough for a pause between two successes to be one of the platform's. */
const KINDS: readonly [kind: string, operations: RegExp][] = [
  ['settings', /^PUT setting/],
  ['tokens', /refresh/],
  ['commands', /Recurring/],
  ['schedules', /^(POST|PATCH) (schedule|complete|pause|resume)/],
];

/** Counts what became of every attempt of every caller, and keeps those that are failures whatever the fault. */
export class Traffic {
  /** What is being done to the platform; an attempt counts for the moment that it began. */
  phase = 'no fault';
  /** True while nothing may fail: every attempt has to succeed at once. */
  isStrict = false;
  readonly unexpected: Unexpected[] = [];
  unexpectedCount = 0;
  attempts = 0;
  /** Responses that callers threw away on purpose, as if they had been lost on the way. */
  lostResponses = 0;
  /** How often each outcome came, by phase, and by operation where it was no success. */
  readonly outcomes = new Map<string, number>();
  /** The longest that any attempt took, in ms, by phase. */
  readonly longestMs = new Map<string, number>();

  readonly #lastSuccesses = new Map<string, number>();
  #pauses = new Map<string, number>();

  /** Measures pauses from now on. */
  watchPauses(): void {
    const now = performance.now();
    this.#pauses = new Map();
    for (const kind of this.#lastSuccesses.keys()) this.#lastSuccesses.set(kind, now);
  }

  /** The longest time without a success since `watchPauses`, in ms, by kind of request. */
  pausesMs(): Record<string, number> {
    for (const kind of this.#lastSuccesses.keys()) this.#noteSuccess(kind);
    return Object.fromEntries(this.#pauses);
  }

  #noteSuccess(kind: string): void {
    const now = performance.now();
    const pause = now - (this.#lastSuccesses.get(kind) ?? now);
    this.#pauses.set(kind, Math.max(pause, this.#pauses.get(kind) ?? 0));
    this.#lastSuccesses.set(kind, now);
  }

  /** An attempt begins; the result says under which rules. */
  begin(): { phase: string; isStrict: boolean; startedAtMs: number } {
    this.attempts += 1;
    return { phase: this.phase, isStrict: this.isStrict, startedAtMs: performance.now() };
  }

  end(
    { phase, isStrict, startedAtMs }: ReturnType<Traffic['begin']>,
    attempt: { operation: string; outcome: string; isExpected: boolean; isSuccess: boolean; detail: string },
  ): void {
    const { operation, outcome, detail } = attempt;
    const kind = KINDS.find(([, pattern]) => pattern.test(operation))?.[0];
    if (attempt.isSuccess && kind !== undefined) this.#noteSuccess(kind);
    // Of what did not succeed it matters what it was.
    const key = `${phase} · ${outcome}${attempt.isSuccess ? '' : ` · ${operation}`}`;
    this.outcomes.set(key, (this.outcomes.get(key) ?? 0) + 1);
    const tookMs = performance.now() - startedAtMs;
    this.longestMs.set(phase, Math.max(tookMs, this.longestMs.get(phase) ?? 0));
    if (attempt.isExpected && (!isStrict || attempt.isSuccess)) return;
    this.unexpectedCount += 1;
    if (this.unexpected.length < MAX_DETAILS)
      this.unexpected.push({ operation, outcome, during: phase, detail });
  }
}

/** A request as callers of the platform make it. */
export interface Call {
  /** The method and a name for the report, which has no identifiers in it. */
  readonly operation: `${'GET' | 'PUT' | 'POST' | 'PATCH'} ${string}`;
  readonly url: string;
  readonly token?: string;
  readonly idempotencyKey?: string;
  readonly body?: unknown;
  /** Statuses besides 2xx that settle the call. */
  readonly finalStatuses?: readonly number[];
  /** Statuses besides 503 after which the caller tries again. */
  readonly retriedStatuses?: readonly number[];
}

export interface CallResponse {
  readonly status: number;
  readonly text: string;
}

/** What a caller knows of its call. */
export interface Outcome {
  /** Null: it gave up, and does not know whether the call had an effect. */
  readonly response: CallResponse | null;
  /** An attempt got no response: a replica that stood still may carry it out later. */
  readonly mayComeLate: boolean;
  readonly invokedAtMs: number;
  readonly endedAtMs: number;
}

const ATTEMPT_TIMEOUT_MS = 15_000;
const MIN_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1_000;
/** Probability (0–1) that a caller loses a good response to a call that may be repeated. */
const LOSS_RATE = 0.04;

/** A well-behaved caller: it waits for a response only so long, and repeats what got no response or 503. It loses some responses, as
 *  callers on a bad network do. */
export class Caller {
  readonly #traffic: Traffic;
  readonly #random: Random;
  readonly #stop: AbortSignal;

  constructor(traffic: Traffic, random: Random, stop: AbortSignal) {
    this.#traffic = traffic;
    this.#random = random;
    this.#stop = stop;
  }

  /** Repeats a call until it has a final response, for `patienceMs` at most. */
  async persist(call: Call, patienceMs = 90_000): Promise<Outcome> {
    const invokedAtMs = performance.now();
    let mayComeLate = false;
    for (let attempt = 0; ; attempt += 1) {
      const response = await this.attempt(call);
      mayComeLate ||= response === null;
      const isLost = response !== null && !this.#stop.aborted && this.#random.chance(LOSS_RATE);
      const endedAtMs = performance.now();
      if (response !== null && isFinal(call, response) && !isLost)
        return { response, mayComeLate, invokedAtMs, endedAtMs };
      if (isLost) this.#traffic.lostResponses += 1;
      if (endedAtMs - invokedAtMs > patienceMs)
        return { response: null, mayComeLate, invokedAtMs, endedAtMs };
      if (!isLost) await delay(this.#pauseMs(attempt));
    }
  }

  /** One attempt on a connection of its own; null when no response came. */
  async attempt(call: Call): Promise<CallResponse | null> {
    const begun = this.#traffic.begin();
    const { operation, retriedStatuses = [] } = call;
    try {
      const response = await send(call);
      const isSuccess = isFinal(call, response);
      const isExpected = isSuccess || [503, ...retriedStatuses].includes(response.status);
      const detail = isExpected ? '' : response.text.slice(0, 500);
      const outcome = String(response.status);
      this.#traffic.end(begun, { operation, outcome, isExpected, isSuccess, detail });
      return response;
    } catch (error) {
      const outcome = error instanceof Error && 'code' in error ? String(error.code) : String(error);
      this.#traffic.end(begun, { operation, outcome, isExpected: true, isSuccess: false, detail: outcome });
      return null;
    }
  }

  #pauseMs(attempt: number): number {
    const most = Math.min(MAX_PAUSE_MS, MIN_PAUSE_MS * 2 ** attempt);
    return most / 2 + this.#random.next() * (most / 2);
  }
}

function isFinal({ finalStatuses = [] }: Call, { status }: CallResponse): boolean {
  return (status >= 200 && status < 300) || finalStatuses.includes(status);
}

/** @throws {Error} with code ABORT_ERR when no response came in time */
async function send({ operation, url, token, idempotencyKey, body }: Call): Promise<CallResponse> {
  const [method] = operation.split(' ', 1);
  const text = body === undefined ? '' : JSON.stringify(body);
  const headers = {
    // Balancers know connections, not requests: one request each, so that none is on its way when a server closes an idle one.
    connection: 'close',
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    ...(body === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
  };
  const signal = AbortSignal.timeout(ATTEMPT_TIMEOUT_MS);
  const request = httpRequest(url, { method, headers, agent: false, signal });
  // An error after the response has begun also fails the reading of it.
  request.on('error', () => undefined).end(text);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  return { status: response.statusCode ?? 0, text: await readText(response) };
}

/** What every worker of the load works with. */
export interface LoadContext {
  readonly caller: Caller;
  readonly journal: Journal;
  readonly random: Random;
  /** Tells workers to finish what they have begun. */
  readonly stop: AbortSignal;
  readonly urls: Readonly<Record<'auth' | 'settings' | 'task' | 'customers', string>>;
  /** Of a user with the persona InternalPartner. */
  readonly adminToken: string;
}

/** The pause of a worker between two of its requests, in ms: the machine has to carry the platform as well. */
export const PAUSE_MS = 25;

/** Repeats `step` until the load ends. @param step gets its number, from 0 */
export async function repeatUntilStopped(
  { stop }: LoadContext,
  step: (count: number) => Promise<unknown>,
  pauseMs = PAUSE_MS,
): Promise<void> {
  for (let count = 0; !stop.aborted; count += 1) {
    await step(count);
    await delay(pauseMs);
  }
}
