import type { TokenFlow } from './rejection';

/** Paths of the token endpoints, and the flow whose column of the status table they use. The obsolete aliases are flows'
 *  second names. */
const TOKEN_ENDPOINTS: ReadonlyMap<string, TokenFlow> = new Map([
  ['/auth/token/refresh', 'refresh'],
  ['/auth/token/user', 'password'],
  ['/auth/token/trust', 'trust'],
  ['/auth/token/trust-simple', 'trust-simple'],
  ['/auth/token/bearer', 'bearer'],
  ['/auth/token/trustedtoken', 'bearer'],
]);

/** The flow behind a request, or null when it is not for a token endpoint. Needed because a body that cannot be
 *  parsed fails before any controller is known. Matches like the router: any case, one trailing slash ignored. */
export function findTokenFlow(method: string, url: string): TokenFlow | null {
  if (method !== 'POST') return null;
  const path = url.split('?', 1)[0]!.toLowerCase();
  return TOKEN_ENDPOINTS.get(path.endsWith('/') ? path.slice(0, -1) : path) ?? null;
}
