import type { FastifyInstance, FastifyRequest } from 'fastify';
import { problems } from '../problems/problem';

const NUL = '\u0000';
/** U+0000 in a path or a query; nothing else decodes to it. */
const ENCODED_NUL = '%00';
const DETAIL = 'The request holds the character U+0000, which cannot be stored.';

/** What a service wants of requests before its routes see them. */
interface RequestRules {
  /** Templates of GET routes that change something. */
  actingGets: readonly string[];
  /** Whether bodies are refused that hold U+0000 in any text: false where JSON is stored as it was sent. */
  plainBodies: boolean;
}

/** Adds the hooks; before any route, because routes only have the hooks that were there before them. */
export function guardRequests(instance: FastifyInstance, { actingGets, plainBodies }: RequestRules): void {
  const acting = new Set(actingGets.map((route) => route.toLowerCase()));
  instance.addHook('onRequest', (request, reply, done) => {
    if (request.raw.url?.includes(ENCODED_NUL) === true) done(problems.badRequest(DETAIL));
    // Link previews and scanners ask so: they may look at everything, and start nothing (RFC 9110, 9.2.1).
    else if (request.method === 'HEAD' && acting.has(routeOf(request))) void reply.code(204).send();
    else done();
  });
  if (!plainBodies) return;
  instance.addHook('preValidation', (request, _reply, done) => {
    if (holdsNul(request.body)) done(problems.badRequest(DETAIL));
    else done();
  });
}

function routeOf(request: FastifyRequest): string {
  return request.routeOptions.url?.toLowerCase() ?? '';
}

/**
 * True when any text in a parsed body, names of members included, holds U+0000. Its depth is bounded: see
 * `acceptBodies`.
 */
export function holdsNul(value: unknown): boolean {
  if (typeof value === 'string') return value.includes(NUL);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, member]) => name.includes(NUL) || holdsNul(member));
}
