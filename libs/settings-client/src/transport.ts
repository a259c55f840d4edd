import { SYSTEM_CLOCK, sleep } from '@platform/time';
import { SettingsUnavailableError, httpError } from './errors';
import { MAX_RETRIES, RetryBudget, isRetryableStatus, parseRetryAfterMs, retryDelayMs } from './retry-policy';
import type { RetryBudgetOptions } from './retry-policy';

/** A source of access tokens, such as the TokenProvider of `@platform/auth-client`. */
export interface AccessTokenProvider {
  getToken(): Promise<string>;
  /** Called when the service refused `token`, so that the next `getToken` returns a new one. */
  invalidate?(token: string): void;
}

/** A fixed token, a function, or a provider. */
export type AccessTokenSource = string | (() => string | Promise<string>) | AccessTokenProvider;

/**
 * Time and randomness as the client uses them. Replaceable, so that tests can measure waits without waiting.
 */
export interface PassingTime {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `durationMs`. Rejects with the signal's reason as soon as it aborts. */
  sleep(durationMs: number, signal?: AbortSignal): Promise<void>;
  /** Returns a random number from 0 (inclusive) to 1 (exclusive). */
  random(): number;
}

/** The system's time and randomness. */
export const REAL_TIME: PassingTime = {
  now: () => SYSTEM_CLOCK.now().getTime(),
  sleep,
  random: Math.random,
};

/** A request to the service. Every attempt sends the same one. */
export interface ServiceRequest {
  readonly method: 'GET' | 'PUT' | 'POST' | 'DELETE';
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal | undefined;
  /** Default {@link MAX_RETRIES}. */
  readonly maxRetries?: number | undefined;
  /**
   * Additional time for a request on which the service waits on purpose, in milliseconds. Added to the
   * timeout of an attempt.
   */
  readonly waitMs?: number;
}

/** A complete response with status 2xx or 304. */
export interface ServiceResponse {
  readonly status: number;
  readonly etag: string | null;
  readonly contentType: string;
  readonly body: string;
}

export interface TransportOptions {
  readonly token: AccessTokenSource;
  readonly fetch: typeof globalThis.fetch;
  readonly attemptTimeoutMs: number;
  /** Null for no limit across calls. */
  readonly retryBudget: RetryBudgetOptions | null;
  readonly time: PassingTime;
}

/** The failure of an attempt that a retry may fix. */
interface Failure {
  readonly cause: unknown;
  readonly retryAfterMs: number | null;
}

interface RawResponse extends ServiceResponse {
  readonly retryAfter: string | null;
}

/** Sends requests with an access token, a timeout per attempt, and retries. */
export class Transport {
  private readonly tokens: AccessTokenProvider;
  private readonly budget: RetryBudget | null;

  constructor(private readonly options: TransportOptions) {
    this.tokens = accessTokenProvider(options.token);
    this.budget = options.retryBudget && new RetryBudget(options.retryBudget);
  }

  /**
   * @throws {SettingsHttpError} for an error that a retry cannot change
   * @throws {SettingsUnavailableError} when the attempts or the retry budget are used up
   * @throws the reason of `request.signal` as soon as it aborts; any error of the token source
   */
  async send(request: ServiceRequest): Promise<ServiceResponse> {
    const { time } = this.options;
    const maxRetries = request.maxRetries ?? MAX_RETRIES;
    for (let attempt = 1; ; attempt += 1) {
      const result = await this.attempt(request);
      if ('status' in result) return result;
      if (attempt > maxRetries || this.budget?.take() === false)
        throw new SettingsUnavailableError(attempt, result);
      await time.sleep(retryDelayMs(attempt, time.random(), result.retryAfterMs), request.signal);
    }
  }

  private async attempt(request: ServiceRequest): Promise<ServiceResponse | Failure> {
    request.signal?.throwIfAborted();
    const token = await abortable(this.tokens.getToken(), request.signal);
    let response = await this.exchange(request, token);
    if ('status' in response && response.status === 401) {
      const renewed = await abortable(this.renewToken(token), request.signal);
      if (renewed !== null) response = await this.exchange(request, renewed);
    }
    if (!('status' in response)) return response;
    if ((response.status >= 200 && response.status < 300) || response.status === 304) {
      this.budget?.recordSuccess();
      return response;
    }
    const error = httpError(response.status, response.body);
    if (!isRetryableStatus(response.status)) throw error;
    return { cause: error, retryAfterMs: parseRetryAfterMs(response.retryAfter, this.options.time.now()) };
  }

  /**
   * Gets a new token after a 401. Returns null if the source has no other token, so that a retry would be
   * useless.
   */
  private async renewToken(refused: string): Promise<string | null> {
    this.tokens.invalidate?.(refused);
    const token = await this.tokens.getToken();
    return token === refused ? null : token;
  }

  /** Sends one request and reads its whole response, within the timeout of an attempt. */
  private async exchange(request: ServiceRequest, token: string): Promise<RawResponse | Failure> {
    const { fetch, time } = this.options;
    const attemptTimeoutMs = this.options.attemptTimeoutMs + (request.waitMs ?? 0);
    const done = new AbortController();
    const limit = new AbortController();
    // This timer ends with the attempt. AbortSignal.timeout would keep running, and would ignore a test's
    // clock.
    time.sleep(attemptTimeoutMs, done.signal).then(
      () => {
        limit.abort(new DOMException(`no response within ${String(attemptTimeoutMs)} ms`, 'TimeoutError'));
      },
      () => undefined,
    );
    const signals = request.signal === undefined ? [limit.signal] : [limit.signal, request.signal];
    try {
      const response = await fetch(request.url, init(request, token, AbortSignal.any(signals)));
      return await readResponse(response);
    } catch (cause) {
      // If the caller aborted, throw the caller's reason.
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
    // A redirect of a wrong base URL could lead to a login page that responds with 200.
    redirect: 'manual',
    signal,
  };
}

async function readResponse(response: Response): Promise<RawResponse> {
  return {
    status: response.status,
    etag: response.headers.get('etag'),
    contentType: response.headers.get('content-type') ?? '',
    retryAfter: response.headers.get('retry-after'),
    body: await response.text(),
  };
}

/** Converts every kind of source to a provider. */
function accessTokenProvider(source: AccessTokenSource): AccessTokenProvider {
  if (typeof source === 'string') return { getToken: () => Promise.resolve(source) };
  if (typeof source === 'function') return { getToken: async () => source() };
  return source;
}

/**
 * Settles as `work` does, or rejects with the signal's reason as soon as it aborts. `work` itself continues.
 */
export async function abortable<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_resolve, reject) => {
    onAbort = () => {
      reject(signal.reason as Error);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', onAbort);
  }
}
