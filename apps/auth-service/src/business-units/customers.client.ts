import { Inject, Injectable, Logger } from '@nestjs/common';
import { CLOCK, ProblemException, problems, tracedFetch } from '@platform/service-defaults';
import { fullJitterDelayMs, sleep } from '@platform/time';
import type { Clock } from '@platform/time';
import type { z } from 'zod';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { CircuitBreakers } from './circuit-breakers';

const ATTEMPTS = 3;
const LONGEST_RETRY_AFTER_SECONDS = 3_600;
const RETRY_WAIT = { baseMs: 50, maxMs: 200 };

/** What came of one attempt: an answer to pass on, or a failure that may pass by itself. */
type Attempt =
  | { answer: string }
  | { refused: ProblemException }
  | { failed: ProblemException; cause: unknown; isAnswered: boolean };

/**
 * Asks the customers service on a caller's behalf: with a time-out, a few retries, and not at all while it
 * keeps failing.
 */
@Injectable()
export class CustomersClient {
  private readonly breakers: CircuitBreakers;
  private readonly logger = new Logger(CustomersClient.name);

  constructor(
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
    @Inject(CLOCK) clock: Clock,
  ) {
    this.breakers = new CircuitBreakers(clock);
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
      if (!this.breakers.admits(path)) throw unavailable();
      const outcome = await this.attempt(path, token);
      if (!('failed' in outcome)) {
        this.breakers.succeeded(path);
        if ('refused' in outcome) throw outcome.refused;
        return outcome.answer;
      }
      this.breakers.failed(path, outcome);
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
      return { failed: unavailable(), cause, isAnswered: false };
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

/**
 * The caller's own mistakes are passed on; anything else is the customers service's trouble, never ours to
 * call 500.
 */
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
      return { failed: problems.badGateway('The customers service failed.'), cause, isAnswered: true };
    }
  }
}
