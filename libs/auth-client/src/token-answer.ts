import { TokenRequestError } from './token-request-error';

/** What a TokenResponse gave us: the token and how long it lives from its issue on. */
export interface IssuedToken {
  accessToken: string;
  lifetimeMs: number;
}

/** Statuses with which the service says "not now" rather than "no". */
const TRANSIENT_STATUSES: ReadonlySet<number> = new Set([408, 425, 429]);

/**
 * Reads the answer of a token endpoint.
 * @throws {TokenRequestError} `rejected` for a TokenResponse that says so and for other 4xx answers, else `unavailable`
 */
export function readTokenAnswer(status: number, text: string): IssuedToken {
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

/** From `iat` to `exp`, in milliseconds: a duration, so that it holds whatever the clocks on both sides say. */
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
