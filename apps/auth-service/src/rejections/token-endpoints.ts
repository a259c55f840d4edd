import { problems } from '@platform/service-defaults';
import type { FastifyInstance, RouteOptions, onRequestHookHandler } from 'fastify';
import type { TokenFlow } from './token-rejection';

/** The flow of each token endpoint, obsolete aliases included, by method and lower-case path. */
const TOKEN_ENDPOINTS: ReadonlyMap<string, TokenFlow> = new Map([
  ['POST /auth/token/refresh', 'refresh'],
  ['POST /auth/token/user', 'password'],
  ['POST /auth/token/trust', 'trust'],
  ['POST /auth/token/trust-simple', 'trust-simple'],
  ['POST /auth/token/bearer', 'bearer'],
  ['POST /auth/token/trustedtoken', 'bearer'],
  ['GET /auth/token/user/winauth', 'windows'],
  ['GET /auth/token/sso/initiate', 'openid'],
  ['POST /auth/token/openid', 'openid'],
  ['POST /auth/token/code', 'code'],
  ['POST /auth/token/user/azureadlogon', 'openid'],
]);

/** GET routes with side effects: all GET routes among the token endpoints start a sign-in. */
export const GETS_WITH_SIDE_EFFECTS: readonly string[] = [...TOKEN_ENDPOINTS.keys()]
  .filter((endpoint) => endpoint.startsWith('GET '))
  .map((endpoint) => endpoint.slice('GET '.length));

/** Endpoints, in lower case, that accept form bodies only. All others accept JSON only. */
const FORM_ENDPOINTS: ReadonlySet<string> = new Set([
  '/auth/token/openid',
  '/auth/token/user/azureadlogon',
  '/auth/introspect',
]);

/**
 * Returns the flow of a request, or null if it is not for a token endpoint. Errors in parsing the body occur
 * before a controller is called, so the flow must follow from the request. Matches like the router:
 * case-insensitively, and with an optional trailing slash.
 */
export function findTokenFlow(method: string, url: string): TokenFlow | null {
  const path = url.split('?', 1)[0]!.toLowerCase();
  // HEAD gets the response of GET without the body.
  const endpoint = `${method === 'HEAD' ? 'GET' : method} ${path.endsWith('/') ? path.slice(0, -1) : path}`;
  return TOKEN_ENDPOINTS.get(endpoint) ?? null;
}

/** The name of introspection in the audit trail and metrics. It issues no token, so it is not a flow. */
export const INTROSPECTION = 'introspection';

/** The part of Fastify's request that identifies its route. */
interface RoutedRequest {
  readonly method: string;
  readonly url: string;
  /** `url` is the pattern of the matched route; undefined if no route matched. */
  readonly routeOptions?: { readonly url?: string | undefined };
}

/**
 * Returns the flow of a request by its matched route, or null if it is not for a token endpoint. The route is
 * reliable, unlike the URL, which can be written in several ways (`/auth/token/%75ser`,
 * `http://host/auth/token/user`).
 */
export function tokenFlowOf({ method, url, routeOptions }: RoutedRequest): TokenFlow | null {
  return findTokenFlow(method, routeOptions?.url ?? url);
}

/** Returns true for a request to `POST /auth/introspect`, however its URL is written. */
export function isIntrospection({ method, url, routeOptions }: RoutedRequest): boolean {
  const path = (routeOptions?.url ?? url).split('?', 1)[0]!.toLowerCase();
  return method === 'POST' && path.replace(/\/$/, '') === '/auth/introspect';
}

/**
 * Makes the endpoints in FORM_ENDPOINTS accept only forms, and all others, for which the specification
 * requires JSON, refuse forms. Call it before the routes are registered.
 */
export function requireBodyTypes(instance: FastifyInstance): void {
  instance.addHook('onRoute', (route) => {
    if (!takesBody(route)) return;
    const check = FORM_ENDPOINTS.has(route.url.toLowerCase()) ? requireForm : refuseForm;
    route.onRequest = [...[route.onRequest ?? []].flat(), check] as onRequestHookHandler[];
  });
}

const FORM = /^application\/x-www-form-urlencoded\b/i;

const requireForm: onRequestHookHandler = ({ headers }, _reply, done) => {
  // A request without Content-Type has no body, or one that is refused later.
  if (FORM.test(headers['content-type'] ?? 'application/x-www-form-urlencoded')) done();
  else done(problems.unsupportedMediaType('The body must be a form (application/x-www-form-urlencoded).'));
};

const refuseForm: onRequestHookHandler = ({ headers }, _reply, done) => {
  // curl and other clients send this type even with an empty body, which is allowed.
  if (FORM.test(headers['content-type'] ?? '') && headers['content-length'] !== '0')
    done(problems.unsupportedMediaType());
  else done();
};

function takesBody({ method }: RouteOptions): boolean {
  return [method].flat().some((each) => each !== 'GET' && each !== 'HEAD');
}
