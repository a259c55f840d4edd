import { createTrustRequest } from './trust-request';

/** Reason why a token request failed. */
export type TokenRequestFailure =
  /**
   * auth-service refused; see `status` and `rejectionReason`. A retry with the same settings will not help.
   */
  | 'rejected'
  /** auth-service is unreachable, overloaded or sent an invalid response. The provider will retry. */
  | 'unavailable'
  /** The caller's signal aborted the wait. */
  | 'aborted';

/** A token could not be obtained. The error holds no secret, no code and no token. */
export class TokenRequestError extends Error {
  override readonly name = 'TokenRequestError';
  /** HTTP status, if the service responded. */
  readonly status: number | undefined;
  /** TokenRejectionReason, if the response had one. Source: authentication spec, TokenRejectionReason. */
  readonly rejectionReason: number | undefined;

  constructor(
    readonly failure: TokenRequestFailure,
    message: string,
    details: { status?: number; rejectionReason?: number; cause?: unknown } = {},
  ) {
    super(message, 'cause' in details ? { cause: details.cause } : undefined);
    this.status = details.status;
    this.rejectionReason = details.rejectionReason;
  }
}

export interface TokenProviderOptions {
  /** Address of auth-service, e.g. `https://auth.example.com`. */
  authServiceUrl: string;
  applicationKey: string;
  sharedSecret: string;
  /** Persona bits to request. */
  persona: number;
  /** User for whom tokens are issued. */
  userName: string;
  fetch?: typeof globalThis.fetch;
  /** Current time, with which requests are signed. Default: the system clock. */
  now?: () => Date;
  /**
   * Monotonic milliseconds from any origin, with which lifetimes are measured. Default: `performance.now()`.
   */
  monotonicMs?: () => number;
  /** Timeout of a request to auth-service, in milliseconds. Default 5,000. */
  timeoutMs?: number;
  /**
   * Time before expiry at which a token is renewed, in milliseconds. At most a fifth of its lifetime. Default
   * 5 min.
   */
  renewBeforeMs?: number;
}

interface HeldToken {
  readonly accessToken: string;
  readonly renewAtMs: number;
  readonly endsAtMs: number;
}

const DEFAULT_TIMEOUT_MS = 5_000;
const DEFAULT_RENEW_BEFORE_MS = 5 * 60_000;
const FIRST_BACKOFF_MS = 250;
/**
 * Maximum backoff per failure. An outage ends by itself, so retry soon; a refusal ends only when a person
 * acts.
 */
const MAX_BACKOFF_MS = { unavailable: 5_000, aborted: 5_000, rejected: 30_000 } as const;

/**
 * Keeps one access token for a service's own identity (POST /auth/token/trust) and renews it before it
 * expires. At most one request is in flight, however many callers wait.
 *
 * While auth-service fails, callers get the old token until it expires. After that they get the last error at
 * once until the backoff is over: 250 ms, doubling up to 5 s (30 s after a refusal), with jitter.
 */
export class TokenProvider {
  private renewing: Promise<HeldToken> | null = null;
  private failures = 0;
  private retryAtMs = 0;
  private lastError: TokenRequestError | null = null;
  /**
   * Private at run time, not only for the compiler, so that printing or serialising a provider shows no
   * secret and no token.
   */
  readonly #options: TokenProviderOptions;
  #held: HeldToken | null = null;

  constructor(options: TokenProviderOptions) {
    this.#options = options;
  }

  /**
   * Returns a valid token. `signal` ends only this caller's wait; the request continues for the others.
   * @throws {TokenRequestError} when no token can be obtained
   */
  async getToken(signal?: AbortSignal): Promise<string> {
    const nowMs = this.monotonicMs();
    const held = this.#held;
    if (held && nowMs < held.renewAtMs) return held.accessToken;
    if (held && nowMs < held.endsAtMs) {
      // The token is still valid: renew it in the background. A failure is ignored here, because callers get
      // the error only after this token has expired.
      this.renew().catch(() => undefined);
      return held.accessToken;
    }
    return (await untilAborted(this.renew(), signal)).accessToken;
  }

  /**
   * Discards a token that a service refused with 401, so that the next `getToken` requests a new one. A token
   * other than the current one is ignored.
   */
  invalidate(token: string): void {
    if (this.#held?.accessToken === token) this.#held = null;
  }

  private renew(): Promise<HeldToken> {
    if (this.renewing) return this.renewing;
    if (this.lastError && this.monotonicMs() < this.retryAtMs) return Promise.reject(this.lastError);
    this.renewing = this.request()
      .then(
        (token) => this.store(token),
        (error: unknown) => this.backOff(error),
      )
      .finally(() => {
        this.renewing = null;
      });
    return this.renewing;
  }

  private async request(): Promise<{ accessToken: string; lifetimeMs: number; requestedAtMs: number }> {
    const { applicationKey, sharedSecret, persona, userName, ...options } = this.#options;
    const requestedAtMs = this.monotonicMs();
    // No Clock of libs/time: this package is published without dependencies.
    const now = options.now?.() ?? new Date();
    const body = createTrustRequest({ applicationKey, persona, userName }, sharedSecret, now);
    const response = await (options.fetch ?? globalThis.fetch)(tokenAddress(options.authServiceUrl), {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify(body),
      redirect: 'error',
      signal: AbortSignal.timeout(options.timeoutMs ?? DEFAULT_TIMEOUT_MS),
    });
    return { ...readTokenResponse(response.status, await response.text()), requestedAtMs };
  }

  private store(token: { accessToken: string; lifetimeMs: number; requestedAtMs: number }): HeldToken {
    const { accessToken, lifetimeMs, requestedAtMs } = token;
    const marginMs = Math.min(this.#options.renewBeforeMs ?? DEFAULT_RENEW_BEFORE_MS, lifetimeMs / 5);
    const endsAtMs = requestedAtMs + lifetimeMs;
    this.#held = { accessToken, endsAtMs, renewAtMs: endsAtMs - marginMs };
    this.failures = 0;
    this.lastError = null;
    return this.#held;
  }

  private backOff(error: unknown): never {
    const failure = asTokenRequestError(error);
    const delayMs = Math.min(
      MAX_BACKOFF_MS[failure.failure],
      FIRST_BACKOFF_MS * 2 ** Math.min(this.failures, 10),
    );
    this.failures += 1;
    this.retryAtMs = this.monotonicMs() + delayMs * (0.5 + Math.random() / 2);
    this.lastError = failure;
    throw failure;
  }

  private monotonicMs(): number {
    return this.#options.monotonicMs?.() ?? performance.now();
  }
}

function tokenAddress(authServiceUrl: string): URL {
  return new URL('auth/token/trust', authServiceUrl.endsWith('/') ? authServiceUrl : `${authServiceUrl}/`);
}

function asTokenRequestError(error: unknown): TokenRequestError {
  if (error instanceof TokenRequestError) return error;
  const timedOut = error instanceof Error && error.name === 'TimeoutError';
  const message = timedOut ? 'auth-service did not respond in time' : 'the request to auth-service failed';
  return new TokenRequestError('unavailable', message, { cause: error });
}

/** @throws {TokenRequestError} `aborted` when the signal aborts before `work` settles */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const onAbort = (): void =>
      reject(new TokenRequestError('aborted', 'the wait for a token was aborted', { cause: signal.reason }));
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** The token of a TokenResponse, with its lifetime counted from its issue. */
interface IssuedToken {
  accessToken: string;
  lifetimeMs: number;
}

/** 4xx statuses that mean "try again later" instead of a final refusal. */
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([408, 425, 429]);

/**
 * Reads the response of a token endpoint.
 * @throws {TokenRequestError} `rejected` for a 4xx response other than 408, 425 and 429, else `unavailable`
 */
function readTokenResponse(status: number, text: string): IssuedToken {
  const body = parseObject(text);
  if (status === 200 && body?.['wasSuccessful'] === true && typeof body['accessToken'] === 'string') {
    return { accessToken: body['accessToken'], lifetimeMs: lifetimeMs(body['accessToken']) };
  }
  const reason = body?.['rejectionReason'];
  const rejectionReason = typeof reason === 'number' ? { rejectionReason: reason } : {};
  const isFinal = status >= 400 && status < 500 && !TRANSIENT_STATUSES.has(status);
  throw new TokenRequestError(
    isFinal ? 'rejected' : 'unavailable',
    `auth-service responded ${status}${typeof reason === 'number' ? `, rejection reason ${reason}` : ''}`,
    { status, ...rejectionReason },
  );
}

/**
 * Returns the duration from `iat` to `exp` in milliseconds. A duration does not depend on the clocks of
 * either side.
 */
function lifetimeMs(token: string): number {
  const payload = parseObject(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
  const lifetime = (Number(payload?.['exp']) - Number(payload?.['iat'])) * 1_000;
  if (!(lifetime > 0))
    throw new TokenRequestError('unavailable', 'auth-service returned a token without a lifetime');
  return lifetime;
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}
