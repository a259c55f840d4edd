import { problems } from '@platform/service-defaults';
import type { FastifyInstance, RouteOptions, onRequestHookHandler } from 'fastify';
import { FORM_ENDPOINTS, OBSOLETE_ENDPOINTS } from './token-endpoints';

/** Since when the obsolete endpoints are: 2026-01-01, before the first release. RFC 9745 writes it in seconds since 1970. */
const DEPRECATED_SINCE = '@1767225600';

const OBSOLETE_BY_PATH = new Map(
  Object.entries(OBSOLETE_ENDPOINTS).map(([path, successor]) => [path.toLowerCase(), successor]),
);
const FORM_PATHS = new Set([...FORM_ENDPOINTS].map((path) => path.toLowerCase()));

/** Hooks on single routes, so that no other route pays for them; to be added before the routes are built. */
export function addTokenRouteHooks(instance: FastifyInstance): void {
  instance.addHook('onRoute', (route) => {
    const path = route.url.toLowerCase();
    const successor = OBSOLETE_BY_PATH.get(path);
    if (successor !== undefined) addOnRequest(route, announceSuccessor(successor));
    if (!FORM_PATHS.has(path) && takesBody(route)) addOnRequest(route, refuseForms);
  });
}

/** Says on every answer, rejections included, that the endpoint is obsolete (RFC 9745) and what replaces it (RFC 5829). */
function announceSuccessor(successor: string): onRequestHookHandler {
  return (_request, reply, done) => {
    void reply.headers({ deprecation: DEPRECATED_SINCE, link: `<${successor}>; rel="successor-version"` });
    done();
  };
}

/** The specification wants JSON everywhere but on the OpenID Connect callback. */
const refuseForms: onRequestHookHandler = ({ headers }, _reply, done) => {
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(headers['content-type'] ?? '');
  if (isForm && headers['content-length'] !== '0') done(problems.unsupportedMediaType());
  else done();
};

function takesBody({ method }: RouteOptions): boolean {
  return [method].flat().some((each) => each !== 'GET' && each !== 'HEAD');
}

function addOnRequest(route: RouteOptions, hook: onRequestHookHandler): void {
  route.onRequest = [...[route.onRequest ?? []].flat(), hook] as onRequestHookHandler[];
}
