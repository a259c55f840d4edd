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

/** The outcome of one attempt: a response body, a refusal to pass on, or a failure to retry. */
type Attempt =
  | { body: string }
  | { refused: ProblemException }
  | { failed: ProblemException; cause: unknown; hasResponse: boolean };

/** Calls the customers service on behalf of a caller, with a time-out, retries and circuit breakers. */
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

  /**
   * Returns the parsed JSON response to GET `path`.
   * @param token the caller's token, which is passed on
   * @throws {ProblemException} 400, 401, 403, 404, 422 and 429 as the customers service returns them; 502 for
   * an unusable response or a failure; 503 if there is no response
   */
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
        return outcome.body;
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
      if (response.status === 200) return { body: await response.text() };
      await response.body?.cancel();
      return outcomeOf(response);
    } catch (cause) {
      return { failed: unavailable(), cause, hasResponse: false };
    }
  }
}

/** Parses JSON. Returns undefined for other text, which no schema here accepts. */
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

/** Passes on the Retry-After of the customers service, limited to 1 s to 1 h. */
function tooManyRequests(retryAfter: string | null): ProblemException {
  const seconds = /^\d{1,9}$/.test(retryAfter ?? '') ? Number(retryAfter) : 1;
  const headers = { 'Retry-After': String(Math.min(Math.max(seconds, 1), LONGEST_RETRY_AFTER_SECONDS)) };
  return new ProblemException({ status: 429, detail: 'The customers service is asked too often.', headers });
}

/**
 * Passes on the caller's own errors. Anything else is a failure of the customers service: a 502, never a 500.
 */
function outcomeOf({ status, headers }: Pick<Response, 'status' | 'headers'>): Attempt {
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
      // Any other 4xx is not retried, because the result would be the same. The circuit breakers count it as
      // a success.
      if (status >= 400 && status < 500)
        return { refused: problems.badGateway('The customers service did not take the request.') };
      const cause = new Error(`the customers service answered ${String(status)}`);
      return { failed: problems.badGateway('The customers service failed.'), cause, hasResponse: true };
    }
  }
}
