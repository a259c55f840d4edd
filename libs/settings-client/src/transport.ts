import { abortable } from './abortable';
import { accessTokenProvider } from './access-token-source';
import type { AccessTokenProvider, AccessTokenSource } from './access-token-source';
import { SettingsUnavailableError, httpError } from './errors';
import type { PassingTime } from './passing-time';
import { MAX_RETRIES, RetryBudget, isRetryableStatus, parseRetryAfterMs, retryDelayMs } from './retry-policy';
import type { RetryBudgetOptions } from './retry-policy';

/** A request to the service; the same for every attempt. */
export interface ServiceRequest {
  readonly method: 'GET' | 'PUT' | 'DELETE';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
  /** {@link MAX_RETRIES} unless given. */
  readonly maxRetries?: number;
}

/** An answer that was received as a whole: 2xx or 304. */
export interface ServiceAnswer {
  readonly status: number;
  readonly etag: string | null;
  readonly contentType: string;
  readonly body: string;
}

export interface TransportOptions {
  readonly token: AccessTokenSource;
  readonly fetch: typeof globalThis.fetch;
  readonly attemptTimeoutMs: number;
  readonly retryBudget: RetryBudgetOptions;
  readonly time: PassingTime;
}

/** One attempt's failure that another attempt may mend. */
interface Failure {
  readonly cause: unknown;
  readonly retryAfterMs: number | null;
}

interface RawAnswer extends ServiceAnswer {
  readonly retryAfter: string | null;
}

/** Sends requests: token, time limit per attempt, retries within a budget. */
export class Transport {
  private readonly tokens: AccessTokenProvider;
  private readonly budget: RetryBudget;

  constructor(private readonly options: TransportOptions) {
    this.tokens = accessTokenProvider(options.token);
    this.budget = new RetryBudget(options.retryBudget);
  }

  /**
   * @throws {SettingsHttpError} for an error that no retry changes
   * @throws {SettingsUnavailableError} when attempts or the retry budget ran out
   * @throws the reason of `request.signal` as soon as that aborts; whatever the token source throws
   */
  async send(request: ServiceRequest): Promise<ServiceAnswer> {
    const { time } = this.options;
    const maxRetries = request.maxRetries ?? MAX_RETRIES;
    for (let attempt = 1; ; attempt += 1) {
      const result = await this.attempt(request);
      if ('status' in result) return result;
      if (attempt > maxRetries || !this.budget.take())
        throw new SettingsUnavailableError(attempt, { cause: result.cause });
      await time.sleep(retryDelayMs(attempt, time.random(), result.retryAfterMs), request.signal);
    }
  }

  private async attempt(request: ServiceRequest): Promise<ServiceAnswer | Failure> {
    request.signal?.throwIfAborted();
    const token = await abortable(this.tokens.getToken(), request.signal);
    let answer = await this.exchange(request, token);
    if ('status' in answer && answer.status === 401) {
      const renewed = await abortable(this.renewToken(token), request.signal);
      if (renewed !== null) answer = await this.exchange(request, renewed);
    }
    if (!('status' in answer)) return answer;
    if ((answer.status >= 200 && answer.status < 300) || answer.status === 304) {
      this.budget.recordSuccess();
      return answer;
    }
    const error = httpError(answer.status, answer.body);
    if (!isRetryableStatus(answer.status)) throw error;
    return { cause: error, retryAfterMs: parseRetryAfterMs(answer.retryAfter, this.options.time.now()) };
  }

  /** Another token after a 401; null when the source has no other, so that asking again would be in vain. */
  private async renewToken(refused: string): Promise<string | null> {
    this.tokens.invalidate?.(refused);
    const token = await this.tokens.getToken();
    return token === refused ? null : token;
  }

  /** One request and its whole answer, within the time limit of an attempt. */
  private async exchange(request: ServiceRequest, token: string): Promise<RawAnswer | Failure> {
    const { fetch, attemptTimeoutMs, time } = this.options;
    const done = new AbortController();
    const limit = new AbortController();
    // A timer that ends with the attempt; AbortSignal.timeout would not, and does not follow a clock moved by hand.
    time.sleep(attemptTimeoutMs, done.signal).then(
      () => {
        limit.abort(new DOMException(`no answer within ${String(attemptTimeoutMs)} ms`, 'TimeoutError'));
      },
      () => undefined,
    );
    const signals = request.signal === undefined ? [limit.signal] : [limit.signal, request.signal];
    try {
      const response = await fetch(request.url, init(request, token, AbortSignal.any(signals)));
      return await readAnswer(response);
    } catch (cause) {
      // The caller gave up: their reason, not ours.
      request.signal?.throwIfAborted();
      return { cause, retryAfterMs: null };
    } finally {
      done.abort();
    }
  }
}

function init(request: ServiceRequest, token: string, signal: AbortSignal): RequestInit {
  const content = request.body === undefined ? {} : { 'content-type': 'application/json' };
  return {
    method: request.method,
    headers: {
      accept: 'application/json, application/problem+json',
      authorization: `Bearer ${token}`,
      ...content,
      ...request.headers,
    },
    ...(request.body === undefined ? {} : { body: request.body }),
    // Followed, a redirect of a wrong base URL could end at a login page that answers 200.
    redirect: 'manual',
    signal,
  };
}

async function readAnswer(response: Response): Promise<RawAnswer> {
  return {
    status: response.status,
    etag: response.headers.get('etag'),
    contentType: response.headers.get('content-type') ?? '',
    retryAfter: response.headers.get('retry-after'),
    body: await response.text(),
  };
}
