import { problems } from '@platform/service-defaults';
import type { FastifyInstance, RouteOptions, onRequestHookHandler } from 'fastify';
import { FORM_ENDPOINTS } from '../token-endpoints/token-endpoints';

/** Refuses forms wherever the specification wants JSON, which is everywhere but on the OpenID Connect callback. To be called before
 *  the routes are built. */
export function refuseForms(instance: FastifyInstance): void {
  instance.addHook('onRoute', (route) => {
    if (FORM_ENDPOINTS.has(route.url.toLowerCase()) || !takesBody(route)) return;
    route.onRequest = [...[route.onRequest ?? []].flat(), refuseForm] as onRequestHookHandler[];
  });
}

const refuseForm: onRequestHookHandler = ({ headers }, _reply, done) => {
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(headers['content-type'] ?? '');
  // curl and others send this type with an empty body, which is none.
  if (isForm && headers['content-length'] !== '0') done(problems.unsupportedMediaType());
  else done();
};

function takesBody({ method }: RouteOptions): boolean {
  return [method].flat().some((each) => each !== 'GET' && each !== 'HEAD');
}
