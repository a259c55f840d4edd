import { request as httpRequest } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import type { Random } from '#platform/random.ts';
import type { Journal } from './journal.ts';

/** An answer that nobody should have got. */
export interface Unexpected {
  readonly atMs: number;
  readonly operation: string;
  /** A status, or what became of the connection. */
  readonly outcome: string;
  readonly during: string;
  readonly detail: string;
}

const MAX_DETAILS = 200;

/** Counts what became of every attempt of every caller, and keeps those that are failures whatever the fault. */
export class Traffic {
  /** What is being done to the platform; an attempt counts for the moment that it began. */
  phase = 'no fault';
  /** True while nothing may fail: every attempt has to succeed at once. */
  isStrict = false;
  readonly unexpected: Unexpected[] = [];
  unexpectedCount = 0;
  attempts = 0;
  /** Answers that callers threw away on purpose, as if they had been lost on the way. */
  lostAnswers = 0;
  /** How often each outcome came, by phase, and by operation where it was no success. */
  readonly outcomes = new Map<string, number>();
  /** The longest that any attempt took, in ms, by phase. */
  readonly longestMs = new Map<string, number>();

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
    // Of what did not succeed it matters what it was.
    const key = `${phase} · ${outcome}${attempt.isSuccess ? '' : ` · ${operation}`}`;
    this.outcomes.set(key, (this.outcomes.get(key) ?? 0) + 1);
    const tookMs = performance.now() - startedAtMs;
    this.longestMs.set(phase, Math.max(tookMs, this.longestMs.get(phase) ?? 0));
    if (attempt.isExpected && (!isStrict || attempt.isSuccess)) return;
    this.unexpectedCount += 1;
    if (this.unexpected.length < MAX_DETAILS)
      this.unexpected.push({ atMs: startedAtMs, operation, outcome, during: phase, detail });
  }
}

/** A request as callers of the platform make it. */
export interface Call {
  /** Name in the report; no identifiers in it. */
  readonly operation: string;
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  readonly url: string;
  readonly token?: string;
  readonly idempotencyKey?: string;
  readonly body?: unknown;
  /** Statuses besides 2xx that answer the call for good. */
  readonly answers?: readonly number[];
  /** Statuses besides 503 after which the caller tries again. */
  readonly retriedStatuses?: readonly number[];
}

export interface Answer {
  readonly status: number;
  readonly text: string;
}

/** What a caller knows of its call. */
export interface Outcome {
  /** Null: it gave up, and does not know whether the call had an effect. */
  readonly answer: Answer | null;
  /** Attempts without a final answer. Each may have had its effect, or still have it. */
  readonly unanswered: number;
  readonly invokedAtMs: number;
  readonly endedAtMs: number;
}

const ATTEMPT_TIMEOUT_MS = 15_000;
const MIN_PAUSE_MS = 50;
const MAX_PAUSE_MS = 1_000;

/** A well-behaved caller: it waits so long and no longer, and repeats what was not answered or answered 503. Some answers it loses
 *  on the way, as callers on a bad network do. */
export class Caller {
  readonly #traffic: Traffic;
  readonly #random: Random;
  readonly #lossRate: number;
  readonly #stop: AbortSignal;

  /** @param lossRate probability (0–1) that a good answer to a call that may be repeated gets lost */
  constructor(traffic: Traffic, random: Random, { lossRate, stop }: { lossRate: number; stop: AbortSignal }) {
    this.#traffic = traffic;
    this.#random = random;
    this.#lossRate = lossRate;
    this.#stop = stop;
  }

  /** Repeats a call until it is answered, for `patienceMs` at most. */
  async persist(call: Call, patienceMs = 90_000): Promise<Outcome> {
    const invokedAtMs = performance.now();
    let unanswered = 0;
    for (let attempt = 0; ; attempt += 1) {
      const answer = await this.attempt(call);
      const isLost = answer !== null && !this.#stop.aborted && this.#random.chance(this.#lossRate);
      if (answer !== null && isFinal(call, answer) && !isLost)
        return { answer, unanswered, invokedAtMs, endedAtMs: performance.now() };
      if (isLost) this.#traffic.lostAnswers += 1;
      else unanswered += 1;
      const endedAtMs = performance.now();
      if (endedAtMs - invokedAtMs > patienceMs) return { answer: null, unanswered, invokedAtMs, endedAtMs };
      if (!isLost) await delay(this.#pauseMs(attempt));
    }
  }

  /** One attempt on a connection of its own; null when no answer came. */
  async attempt(call: Call): Promise<Answer | null> {
    const begun = this.#traffic.begin();
    const { operation } = call;
    try {
      const answer = await send(call);
      const isSuccess = isFinal(call, answer);
      const isExpected =
        isSuccess || answer.status === 503 || (call.retriedStatuses ?? []).includes(answer.status);
      const detail = isExpected ? '' : answer.text.slice(0, 500);
      this.#traffic.end(begun, { operation, outcome: String(answer.status), isExpected, isSuccess, detail });
      return answer;
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

function isFinal({ answers = [] }: Call, { status }: Answer): boolean {
  return (status >= 200 && status < 300) || answers.includes(status);
}

function send(call: Call): Promise<Answer> {
  const body = call.body === undefined ? null : JSON.stringify(call.body);
  const headers = {
    // Balancers know connections, not requests: one request each, so that none is on its way when a server closes an idle one.
    connection: 'close',
    ...(call.token === undefined ? {} : { authorization: `Bearer ${call.token}` }),
    ...(call.idempotencyKey === undefined ? {} : { 'idempotency-key': call.idempotencyKey }),
    ...(body === null
      ? {}
      : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
  };
  const options = { method: call.method, headers, agent: false as const };
  return new Promise((resolve, reject) => {
    const request = httpRequest(call.url, options, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.once('error', reject);
      response.once('end', () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
      );
    });
    const timer = setTimeout(
      () => request.destroy(Object.assign(new Error('no answer in time'), { code: 'TIMEOUT' })),
      ATTEMPT_TIMEOUT_MS,
    );
    request.once('error', reject);
    request.once('close', () => clearTimeout(timer));
    request.end(body ?? undefined);
  });
}

/** What every worker of the load works with. */
export interface LoadContext {
  readonly caller: Caller;
  readonly journal: Journal;
  readonly random: Random;
  /** Tells workers to finish what they have begun. */
  readonly stop: AbortSignal;
  readonly urls: {
    readonly auth: string;
    readonly settings: string;
    readonly task: string;
    readonly customers: string;
  };
  /** Of a user with the persona InternalPartner. */
  readonly adminToken: string;
}

/** The pause of a worker between two of its requests, in ms: the machine has to carry the platform as well. */
export const PAUSE_MS = 25;

/** The claim `jti` of a JWT. */
export function jtiOf(token: string): string {
  const [, payload = ''] = token.split('.');
  return (JSON.parse(Buffer.from(payload, 'base64url').toString()) as { jti: string }).jti;
}
