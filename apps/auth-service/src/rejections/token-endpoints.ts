import { problems } from '@platform/service-defaults';
import type { FastifyInstance, RouteOptions, onRequestHookHandler } from 'fastify';
import type { TokenFlow } from './token-rejection';

/**
 * Methods and paths of the token endpoints, and the flow whose column of the status table they use. The
 * obsolete aliases are flows' second names.
 */
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

/** GET routes that begin something: every one among the token endpoints. */
export const ACTING_GETS: readonly string[] = [...TOKEN_ENDPOINTS.keys()]
  .filter((endpoint) => endpoint.startsWith('GET '))
  .map((endpoint) => endpoint.slice('GET '.length));

/** Endpoints, in lower case, that take forms only; all others take JSON only. */
const FORM_ENDPOINTS: ReadonlySet<string> = new Set([
  '/auth/token/openid',
  '/auth/token/user/azureadlogon',
  '/auth/introspect',
]);

/**
 * The flow behind a request, or null when it is not for a token endpoint. Needed because a body that cannot
 * be parsed fails before any controller is known. Matches like the router: any case, one trailing slash
 * ignored.
 */
export function findTokenFlow(method: string, url: string): TokenFlow | null {
  const path = url.split('?', 1)[0]!.toLowerCase();
  // HEAD gets the response of GET without the body.
  const endpoint = `${method === 'HEAD' ? 'GET' : method} ${path.endsWith('/') ? path.slice(0, -1) : path}`;
  return TOKEN_ENDPOINTS.get(endpoint) ?? null;
}

/** What the audit trail and the metrics call introspection: it is no flow, because it gives no token. */
export const INTROSPECTION = 'introspection';

/** As much of Fastify's request as tells its route. */
interface RoutedRequest {
  readonly method: string;
  readonly url: string;
  /** Fastify's; `url` is the pattern that the request was matched with, undefined when with none. */
  readonly routeOptions?: { readonly url?: string | undefined };
}

/**
 * The flow behind a request, or null when it is not for a token endpoint: by the route that the router found.
 * An address can be written in more ways than one (`/auth/token/%75ser`, `http://host/auth/token/user`), and
 * the router reads them all.
 */
export function tokenFlowOf({ method, url, routeOptions }: RoutedRequest): TokenFlow | null {
  return findTokenFlow(method, routeOptions?.url ?? url);
}

/** Whether a request is one for `POST /auth/introspect`, however its address is written. */
export function isIntrospection({ method, url, routeOptions }: RoutedRequest): boolean {
  const path = (routeOptions?.url ?? url).split('?', 1)[0]!.toLowerCase();
  return method === 'POST' && path.replace(/\/$/, '') === '/auth/introspect';
}

/**
 * Has the OpenID Connect callback take forms only, and everything else, for which the specification wants
 * JSON, none. To be called before the routes are built.
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
  // Without a type there is no body, or one that is refused later.
  if (FORM.test(headers['content-type'] ?? 'application/x-www-form-urlencoded')) done();
  else done(problems.unsupportedMediaType('The body must be a form (application/x-www-form-urlencoded).'));
};

const refuseForm: onRequestHookHandler = ({ headers }, _reply, done) => {
  // curl and others send this type with an empty body, which is none.
  if (FORM.test(headers['content-type'] ?? '') && headers['content-length'] !== '0')
    done(problems.unsupportedMediaType());
  else done();
};

function takesBody({ method }: RouteOptions): boolean {
  return [method].flat().some((each) => each !== 'GET' && each !== 'HEAD');
}
