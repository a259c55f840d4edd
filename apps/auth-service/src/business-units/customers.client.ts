import { Inject, Injectable, Logger } from '@nestjs/common';
import { CLOCK, ProblemException, problems, tracedFetch } from '@platform/service-defaults';
import { fullJitterDelayMs, sleep } from '@platform/time';
import type { Clock } from '@platform/time';
import type { z } from 'zod';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';

const ATTEMPTS = 3;
const LONGEST_RETRY_AFTER_SECONDS = 3_600;
const RETRY_WAIT = { baseMs: 50, maxMs: 200 };
const BREAKER = { failures: 5, openMs: 5_000 };

/** What came of one attempt: an answer to pass on, or a failure that may pass by itself. */
type Attempt =
  { answer: string } | { refused: ProblemException } | { failed: ProblemException; cause: unknown };

/** Asks the customers service on a caller's behalf: with a time-out, a few retries, and not at all while it keeps failing. */
@Injectable()
export class CustomersClient {
  private readonly breaker: CircuitBreaker;
  private readonly logger = new Logger(CustomersClient.name);

  constructor(
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
    @Inject(CLOCK) clock: Clock,
  ) {
    this.breaker = new CircuitBreaker(BREAKER, clock);
  }

  /** The JSON answer to GET `path`. @param token the caller's, passed on
   *  @throws {ProblemException} 400, 401, 403, 404, 422 and 429 as the customers service answers them; 502 for an answer that cannot be used, 503 when
   *    there is none */
  async get<T>(path: string, token: string, schema: z.ZodType<T>): Promise<T> {
    const read = schema.safeParse(parseJson(await this.ask(path, token)));
    if (!read.success) throw problems.badGateway('The customers service gave an answer that cannot be used.');
    return read.data;
  }

  private async ask(path: string, token: string): Promise<string> {
    for (let attempt = 1; ; attempt += 1) {
      if (!this.breaker.admits()) throw unavailable();
      const outcome = await this.attempt(path, token);
      if (!('failed' in outcome)) {
        this.breaker.succeeded();
        if ('refused' in outcome) throw outcome.refused;
        return outcome.answer;
      }
      this.breaker.failed();
      this.logger.warn('the customers service did not answer', { err: outcome.cause, attempt });
      if (attempt === ATTEMPTS) throw outcome.failed;
      await sleep(fullJitterDelayMs(attempt, RETRY_WAIT));
    }
  }

  private async attempt(path: string, token: string): Promise<Attempt> {
    try {
      const response = await tracedFetch(`${this.config.CUSTOMERS_SERVICE_URL.replace(/\/$/, '')}${path}`, {
        headers: { authorization: `Bearer ${token}`, accept: 'application/json' },
        redirect: 'error',
        signal: AbortSignal.timeout(this.config.CUSTOMERS_SERVICE_TIMEOUT_MS),
      });
      if (response.status === 200) return { answer: await response.text() };
      await response.body?.cancel();
      return notAnswered(response);
    } catch (cause) {
      return { failed: unavailable(), cause };
    }
  }
}

/** Undefined, which no schema here accepts, for text that is not JSON. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function unavailable(): ProblemException {
  return problems.serviceUnavailable('The customers service cannot be reached at the moment.');
}

/** The caller comes back when the customers service says, within bounds of ours. */
function tooManyRequests(retryAfter: string | null): ProblemException {
  const seconds = /^\d{1,9}$/.test(retryAfter ?? '') ? Number(retryAfter) : 1;
  const headers = { 'Retry-After': String(Math.min(Math.max(seconds, 1), LONGEST_RETRY_AFTER_SECONDS)) };
  return new ProblemException({ status: 429, detail: 'The customers service is asked too often.', headers });
}

/** The caller's own mistakes are passed on; anything else is the customers service's trouble, never ours to call 500. */
function notAnswered({ status, headers }: Pick<Response, 'status' | 'headers'>): Attempt {
  switch (status) {
    case 400:
      return { refused: problems.badRequest('The customers service refused the request.') };
    case 401:
      return { refused: problems.unauthorized('The customers service did not accept the token.') };
    case 403:
      return { refused: problems.forbidden('The customers service refused this caller.') };
    case 404:
      return { refused: problems.notFound('The customers service knows no such business unit.') };
    case 410:
      return { refused: problems.notFound('The customers service knows no such business unit any more.') };
    case 422:
      return { refused: problems.unprocessable('The customers service refused the request.') };
    case 429:
      return { refused: tooManyRequests(headers.get('retry-after')) };
    default: {
      // Asking again would be answered the same, and the customers service is well.
      if (status >= 400 && status < 500)
        return { refused: problems.badGateway('The customers service did not take the request.') };
      const cause = new Error(`the customers service answered ${String(status)}`);
      return { failed: problems.badGateway('The customers service failed.'), cause };
    }
  }
}

export interface CircuitBreakerLimits {
  /** Failures in a row that open the circuit. */
  failures: number;
  /** How long it stays open before one attempt is let through, in ms. */
  openMs: number;
}

/** Stops asking a neighbour that keeps failing: while open, callers are refused at once instead of waiting for a time-out. */
export class CircuitBreaker {
  private failuresInARow = 0;
  private openedAtMs: number | null = null;

  constructor(
    private readonly limits: CircuitBreakerLimits,
    private readonly clock: Clock,
  ) {}

  /** True when an attempt may be made. When the time is up it lets one caller through and keeps the others out until that one
   *  has reported. */
  admits(): boolean {
    if (this.openedAtMs === null) return true;
    const nowMs = this.clock.monotonicMs();
    if (nowMs - this.openedAtMs < this.limits.openMs) return false;
    this.openedAtMs = nowMs;
    return true;
  }

  succeeded(): void {
    this.failuresInARow = 0;
    this.openedAtMs = null;
  }

  failed(): void {
    this.failuresInARow += 1;
    if (this.failuresInARow >= this.limits.failures) this.openedAtMs = this.clock.monotonicMs();
  }
}
