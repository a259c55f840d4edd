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
  ['/auth/token/openid', 'openid'],
  ['/auth/token/user/azureadlogon', 'openid'],
]);

/** Token endpoints that are asked with GET. */
const GET_TOKEN_ENDPOINTS: ReadonlyMap<string, TokenFlow> = new Map([['/auth/token/sso/initiate', 'openid']]);

const ENDPOINTS_BY_METHOD: Readonly<Partial<Record<string, ReadonlyMap<string, TokenFlow>>>> = {
  POST: TOKEN_ENDPOINTS,
  GET: GET_TOKEN_ENDPOINTS,
  // Answered by the routes of GET.
  HEAD: GET_TOKEN_ENDPOINTS,
};

/** Obsolete endpoints that stay available, and what takes their place. */
export const OBSOLETE_ENDPOINTS: Readonly<Record<string, string>> = {
  '/auth/token/user/AzureADLogOn': '/auth/token/openId',
  '/auth/token/trustedToken': '/auth/token/bearer',
};

/** Endpoints that take forms; all others take JSON only. */
export const FORM_ENDPOINTS: ReadonlySet<string> = new Set([
  '/auth/token/openId',
  ...Object.keys(OBSOLETE_ENDPOINTS),
]);

/** The flow behind a request, or null when it is not for a token endpoint. Needed because a body that cannot be
 *  parsed fails before any controller is known. Matches like the router: any case, one trailing slash ignored. */
export function findTokenFlow(method: string, url: string): TokenFlow | null {
  const endpoints = ENDPOINTS_BY_METHOD[method];
  if (endpoints === undefined) return null;
  const path = url.split('?', 1)[0]!.toLowerCase();
  return endpoints.get(path.endsWith('/') ? path.slice(0, -1) : path) ?? null;
}
