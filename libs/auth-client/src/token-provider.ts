import { createTrustRequest } from './trust-request';

/** Why no token came. */
export type TokenRequestFailure =
  /**
   * The service refused: `status` and `rejectionReason` say how. Asking again with the same settings will not
   * help.
   */
  | 'rejected'
  /** The service is out of reach, overloaded or sends an invalid response; it will be asked again. */
  | 'unavailable'
  /** The caller's signal ended the wait. */
  | 'aborted';

/** No token could be had. Holds no secret, no code and no token. */
export class TokenRequestError extends Error {
  override readonly name = 'TokenRequestError';
  /** HTTP status, if the service responded. */
  readonly status: number | undefined;
  /** TokenRejectionReason, if the service gave one. Source: authentication spec, TokenRejectionReason. */
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
  /** Persona bits to ask for. */
  persona: number;
  /** The user that tokens are issued for. */
  userName: string;
  fetch?: typeof globalThis.fetch;
  /** The time that requests are signed with. */
  now?: () => Date;
  /** Milliseconds from any origin, never going back; what lifetimes are measured with. */
  monotonicMs?: () => number;
  /** Longest wait for auth-service, in milliseconds. Default 5,000. */
  timeoutMs?: number;
  /**
   * How long before its end a token is renewed, in milliseconds; never more than a fifth of its life. Default
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
/** An outage ends by itself: be back soon after it. A refusal ends when somebody acts. */
const MAX_BACKOFF_MS = { unavailable: 5_000, aborted: 5_000, rejected: 30_000 } as const;

/**
 * Keeps one access token for a service's own identity (POST /auth/token/trust) and renews it before it ends.
 * However many callers wait, one request is under way; while auth-service fails, the old token serves until
 * its end, and after that callers get the last error at once until the backoff (250 ms doubling to 5 s, to 30
 * s when refused; jitter) is over.
 */
export class TokenProvider {
  private renewing: Promise<HeldToken> | null = null;
  private failures = 0;
  private retryAtMs = 0;
  private lastError: TokenRequestError | null = null;
  /**
   * Private by nature, not only by type, so that printing or serialising a provider shows no secret and no
   * token.
   */
  readonly #options: TokenProviderOptions;
  #held: HeldToken | null = null;

  constructor(options: TokenProviderOptions) {
    this.#options = options;
  }

  /**
   * A token that is good for a while yet. `signal` ends this caller's wait only; the request goes on for the
   * others.
   * @throws {TokenRequestError} when there is none to be had
   */
  async getToken(signal?: AbortSignal): Promise<string> {
    const nowMs = this.monotonicMs();
    const held = this.#held;
    if (held && nowMs < held.renewAtMs) return held.accessToken;
    if (held && nowMs < held.endsAtMs) {
      // Still good: renew behind the caller's back, and let its failure wait for somebody who needs the
      // result.
      this.renew().catch(() => undefined);
      return held.accessToken;
    }
    return (await untilAborted(this.renew(), signal)).accessToken;
  }

  /**
   * Call it when a service refused the token with 401: the next `getToken` brings another. Old tokens are
   * ignored.
   */
  invalidate(token: string): void {
    if (this.#held?.accessToken === token) this.#held = null;
  }

  private renew(): Promise<HeldToken> {
    if (this.renewing) return this.renewing;
    if (this.lastError && this.monotonicMs() < this.retryAtMs) return Promise.reject(this.lastError);
    this.renewing = this.request()
      .then(
        (token) => this.keep(token),
        (error: unknown) => this.backOff(error),
      )
      .finally(() => {
        this.renewing = null;
      });
    return this.renewing;
  }

  private async request(): Promise<{ accessToken: string; lifetimeMs: number; askedAtMs: number }> {
    const { applicationKey, sharedSecret, persona, userName, ...options } = this.#options;
    const askedAtMs = this.monotonicMs();
    // Published without dependencies, so without a Clock of libs/time.
    const now = options.now?.() ?? new Date();
    const body = createTrustRequest({ applicationKey, persona, userName }, sharedSecret, now);
    const response = await (options.fetch ?? globalThis.fetch)(tokenAddress(options.authServiceUrl), {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify(body),
      redirect: 'error',
      signal: AbortSignal.timeout(options.timeoutMs ?? DEFAULT_TIMEOUT_MS),
    });
    return { ...readTokenResponse(response.status, await response.text()), askedAtMs };
  }

  private keep(token: { accessToken: string; lifetimeMs: number; askedAtMs: number }): HeldToken {
    const { accessToken, lifetimeMs, askedAtMs } = token;
    const marginMs = Math.min(this.#options.renewBeforeMs ?? DEFAULT_RENEW_BEFORE_MS, lifetimeMs / 5);
    const endsAtMs = askedAtMs + lifetimeMs;
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
  const message = timedOut ? 'auth-service did not answer in time' : 'auth-service could not be asked';
  return new TokenRequestError('unavailable', message, { cause: error });
}

/** @throws {TokenRequestError} `aborted` as soon as the signal aborts */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const onAbort = (): void =>
      reject(new TokenRequestError('aborted', 'the wait for a token was ended', { cause: signal.reason }));
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** What a TokenResponse gave us: the token and how long it lives from its issue on. */
interface IssuedToken {
  accessToken: string;
  lifetimeMs: number;
}

/** Statuses with which the service says "not now" rather than "no". */
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([408, 425, 429]);

/**
 * Reads the response of a token endpoint.
 * @throws {TokenRequestError} `rejected` for a TokenResponse that says so and for other 4xx responses, else
 * `unavailable`
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
    `auth-service answered ${status}${typeof reason === 'number' ? `, rejection reason ${reason}` : ''}`,
    { status, ...rejectionReason },
  );
}

/**
 * From `iat` to `exp`, in milliseconds: a duration, so that it holds whatever the clocks on both sides say.
 */
function lifetimeMs(token: string): number {
  const payload = parseObject(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'));
  const lifetime = (Number(payload?.['exp']) - Number(payload?.['iat'])) * 1_000;
  if (!(lifetime > 0))
    throw new TokenRequestError('unavailable', 'auth-service answered a token without a lifetime');
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
