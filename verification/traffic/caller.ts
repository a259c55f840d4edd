import { once } from 'node:events';
import { type IncomingMessage, type OutgoingHttpHeaders, request as httpRequest } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '#platform/random.ts';
import { type Connections, ONE_REQUEST_EACH } from './connections.ts';

/** A response that no fault explains. */
export interface Unexpected {
  readonly operation: string;
  /** A status, or the error code of the connection. */
  readonly outcome: string;
  /** The phase of the run in which the attempt began. */
  readonly during: string;
  readonly detail: string;
  /** ISO 8601, as in the services' log lines. */
  readonly at: string;
}

/** Maximum number of unexpected responses kept per kind, so that many of one kind do not crowd out others. */
const MAX_DETAILS = 20;
/**
 * Kinds of requests that are frequent enough for a gap between two successes to mean a pause of the platform.
 */
const KINDS: readonly [kind: string, operations: RegExp][] = [
  ['settings', /^PUT setting/],
  ['tokens', /refresh/],
  ['commands', /Recurring/],
  ['schedules', /^(POST|PATCH) (schedule|complete|pause|resume)/],
];

/** Counts the outcomes of all attempts of all callers, and keeps those that no fault explains. */
export class Traffic {
  /** The fault in progress, e.g. `half-open`. An attempt counts for the phase in which it began. */
  phase = 'no fault';
  /** While true, every attempt that begins must succeed. */
  isStrict = false;
  readonly unexpected: Unexpected[] = [];
  unexpectedCount = 0;
  attempts = 0;
  /** Number of connections opened. */
  connections = 0;
  /** Number of responses that callers discarded to simulate a loss on the network. */
  lostResponses = 0;
  /** Number of attempts by phase and outcome, and for failures also by operation. */
  readonly outcomes = new Map<string, number>();
  /** Duration of the longest attempt in ms, by phase. */
  readonly longestMs = new Map<string, number>();

  /** Start of each successful write attempt, in ms of the journal's clock. */
  readonly writesBegunAtMs: number[] = [];

  readonly #unexpectedOfKind = new Map<string, number>();
  readonly #lastSuccesses = new Map<string, number>();
  #pauses = new Map<string, number>();

  /** Restarts the measurement of pauses. */
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

  /** Records the start of an attempt. Returns the phase and strictness that apply to it. */
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
    if (attempt.isSuccess && !operation.startsWith('GET')) this.writesBegunAtMs.push(startedAtMs);
    // Failures are counted per operation.
    const key = `${phase} · ${outcome}${attempt.isSuccess ? '' : ` · ${operation}`}`;
    this.outcomes.set(key, (this.outcomes.get(key) ?? 0) + 1);
    const tookMs = performance.now() - startedAtMs;
    this.longestMs.set(phase, Math.max(tookMs, this.longestMs.get(phase) ?? 0));
    if (attempt.isExpected && (!isStrict || attempt.isSuccess)) return;
    this.#keep({ operation, outcome, during: phase, detail, at: new Date().toISOString() });
  }

  #keep(unexpected: Unexpected): void {
    this.unexpectedCount += 1;
    const kind = `${unexpected.operation} ${unexpected.outcome} ${unexpected.during}`;
    const known = this.#unexpectedOfKind.get(kind) ?? 0;
    this.#unexpectedOfKind.set(kind, known + 1);
    if (known < MAX_DETAILS) this.unexpected.push(unexpected);
  }
}

/** A request of a caller. */
export interface Call {
  /** The method, and a name for the report without identifiers. */
  readonly operation: `${'GET' | 'PUT' | 'POST' | 'PATCH' | 'DELETE'} ${string}`;
  readonly url: string;
  readonly token?: string;
  readonly idempotencyKey?: string;
  /** Sent as JSON. A string is sent unchanged. */
  readonly body?: unknown;
  /** Statuses besides 2xx that count as success and end the call. */
  readonly finalStatuses?: readonly number[];
  /** Statuses besides 503 that are expected and lead to a retry. */
  readonly retriedStatuses?: readonly number[];
}

export interface CallResponse {
  readonly status: number;
  readonly text: string;
}

/** The outcome of a call, as its caller knows it. */
export interface Outcome {
  /** Null: the caller gave up. The call may or may not have had an effect. */
  readonly response: CallResponse | null;
  /** True if an attempt got no response: a frozen replica may still execute it later. */
  readonly mayComeLate: boolean;
  readonly invokedAtMs: number;
  readonly endedAtMs: number;
}

const ATTEMPT_TIMEOUT_MS = 15_000;
const MIN_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1_000;
/** Probability (0–1) that a caller discards a successful response and retries. */
const LOSS_RATE = 0.04;

export interface CallerOptions {
  readonly traffic: Traffic;
  readonly random: Random;
  /** After it aborts, the caller discards no more responses. */
  readonly stop: AbortSignal;
  /** False: the caller never discards a response. */
  readonly losesResponses?: boolean;
  readonly connections?: Connections;
}

/**
 * A well-behaved caller: it times out after 15 s, and retries after 503 or no response. It discards 4 % of
 * the successful responses, as if a bad network had lost them.
 */
export class Caller {
  readonly #traffic: Traffic;
  readonly #random: Random;
  readonly #stop: AbortSignal;
  readonly #lossRate: number;
  readonly #connections: Connections;

  constructor({
    traffic,
    random,
    stop,
    losesResponses = true,
    connections = ONE_REQUEST_EACH,
  }: CallerOptions) {
    this.#traffic = traffic;
    this.#random = random;
    this.#stop = stop;
    this.#lossRate = losesResponses ? LOSS_RATE : 0;
    this.#connections = connections;
  }

  /** Repeats a call until it gets a final response, for at most `patienceMs`. */
  async persist(call: Call, patienceMs = 90_000): Promise<Outcome> {
    const invokedAtMs = performance.now();
    let mayComeLate = false;
    for (let attempt = 0; ; attempt += 1) {
      const response = await this.attempt(call);
      mayComeLate ||= response === null;
      const isLost = response !== null && !this.#stop.aborted && this.#random.chance(this.#lossRate);
      const endedAtMs = performance.now();
      if (response !== null && isFinal(call, response) && !isLost)
        return { response, mayComeLate, invokedAtMs, endedAtMs };
      if (isLost) this.#traffic.lostResponses += 1;
      if (endedAtMs - invokedAtMs > patienceMs)
        return { response: null, mayComeLate, invokedAtMs, endedAtMs };
      if (!isLost) await delay(this.#pauseMs(attempt));
    }
  }

  /** Makes one attempt. Null if there was no response. */
  async attempt(call: Call): Promise<CallResponse | null> {
    const begun = this.#traffic.begin();
    const { operation, retriedStatuses = [] } = call;
    try {
      const response = await this.#send(call);
      const isSuccess = isFinal(call, response);
      const isExpected = isSuccess || [503, ...retriedStatuses].includes(response.status);
      const detail = isSuccess ? '' : response.text.slice(0, 500);
      const outcome = String(response.status);
      this.#traffic.end(begun, { operation, outcome, isExpected, isSuccess, detail });
      return response;
    } catch (error) {
      const outcome = error instanceof Error && 'code' in error ? String(error.code) : String(error);
      this.#traffic.end(begun, { operation, outcome, isExpected: true, isSuccess: false, detail: outcome });
      return null;
    }
  }

  /** @throws {Error} with code ABORT_ERR on a timeout */
  async #send(call: Call): Promise<CallResponse> {
    const [method] = call.operation.split(' ', 1);
    const { headers, text } = contentOf(call);
    const signal = AbortSignal.timeout(ATTEMPT_TIMEOUT_MS);
    const agent = this.#connections.next();
    const connection = agent === false ? { connection: 'close' } : {};
    const request = httpRequest(call.url, { method, headers: { ...connection, ...headers }, agent, signal });
    // An error after the response has begun is ignored here, because it also rejects readText().
    request.on('error', () => undefined).end(text);
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    if (!request.reusedSocket) this.#traffic.connections += 1;
    return { status: response.statusCode ?? 0, text: await readText(response) };
  }

  #pauseMs(attempt: number): number {
    const most = Math.min(MAX_PAUSE_MS, MIN_PAUSE_MS * 2 ** attempt);
    return most / 2 + this.#random.next() * (most / 2);
  }
}

function isFinal({ finalStatuses = [] }: Call, { status }: CallResponse): boolean {
  return (status >= 200 && status < 300) || finalStatuses.includes(status);
}

/** The headers of a call, and the text of its body. */
function contentOf({ token, idempotencyKey, body }: Call): { headers: OutgoingHttpHeaders; text: string } {
  const text = body === undefined ? '' : typeof body === 'string' ? body : JSON.stringify(body);
  const headers = {
    ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
    ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
    ...(body === undefined
      ? {}
      : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
  };
  return { headers, text };
}
