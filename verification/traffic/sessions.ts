import type { CallResponse, Outcome } from './caller.ts';
import type { LoadContext } from './context.ts';
import { SUBSYSTEM } from './settings.ts';

export interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string;
}

const INTERNAL_PARTNER = 1;

/** Signs in with the plain shared secret. Null if there was no final response. */
export async function signIn({ caller, urls, application }: LoadContext): Promise<Tokens | null> {
  const { response } = await caller.persist({
    operation: 'POST trust-simple',
    url: `${urls.auth}/auth/token/trust-simple`,
    body: { ...application, persona: INTERNAL_PARTNER },
  });
  return response === null ? null : tokensOf(response);
}

/**
 * Rotates a refresh token. 401 is a final response too.
 * @param hmacSigning requests an HMAC-signed access token
 */
export function refresh(
  { caller, urls }: LoadContext,
  refreshToken: string,
  { patienceMs, hmacSigning }: { patienceMs?: number; hmacSigning?: boolean } = {},
): Promise<Outcome> {
  const call = {
    operation: 'POST refresh',
    url: `${urls.auth}/auth/token/refresh`,
    body: { refreshToken, hmacSigning },
    finalStatuses: [401],
  } as const;
  return caller.persist(call, patienceMs);
}

export function revoke({ caller, urls, admin }: LoadContext, jti: string): Promise<Outcome> {
  const url = `${urls.auth}/auth/revocations/jti/${jti}`;
  return caller.persist({ operation: 'PUT revocation', url, token: admin.token });
}

/** Makes one attempt to read with a revoked token. */
export function useRevoked({ caller, urls }: LoadContext, token: string): Promise<CallResponse | null> {
  return caller.attempt({
    operation: 'GET with a revoked token',
    url: `${urls.settings}/platform/v1/subsystems/${SUBSYSTEM}/settings?pageSize=1`,
    token,
    finalStatuses: [401],
  });
}

export function tokensOf({ text }: CallResponse): Tokens {
  return JSON.parse(text) as Tokens;
}

/** The claim `jti` of a JWT. */
export function jtiOf(token: string): string {
  const [, payload = ''] = token.split('.');
  return (JSON.parse(Buffer.from(payload, 'base64url').toString()) as { jti: string }).jti;
}
