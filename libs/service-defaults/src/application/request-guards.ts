import type { FastifyInstance, FastifyRequest } from 'fastify';
import { problems } from '../problems/problem';

const NUL = '\u0000';
/** U+0000 in a path or a query, where it has no other encoding. */
const ENCODED_NUL = '%00';
const DETAIL = 'The request holds the character U+0000, which cannot be stored.';

/** Rules that requests must satisfy before they reach a route. */
interface RequestRules {
  /** Templates of GET routes with side effects. */
  getsWithSideEffects: readonly string[];
  /**
   * Whether bodies with U+0000 in any string are refused; false for services that store JSON as it was sent.
   */
  refusesNulInBodies: boolean;
}

/**
 * Adds the hooks that enforce the rules. Call it before any route is added, because a route only has the
 * hooks that were added before it.
 */
export function guardRequests(
  instance: FastifyInstance,
  { getsWithSideEffects, refusesNulInBodies }: RequestRules,
): void {
  const acting = new Set(getsWithSideEffects.map((route) => route.toLowerCase()));
  instance.addHook('onRequest', (request, reply, done) => {
    if (request.raw.url?.includes(ENCODED_NUL) === true) done(problems.badRequest(DETAIL));
    // Link previews and scanners send HEAD, which must have no side effects (RFC 9110, 9.2.1).
    else if (request.method === 'HEAD' && acting.has(routeOf(request))) void reply.code(204).send();
    else done();
  });
  if (!refusesNulInBodies) return;
  instance.addHook('preValidation', (request, _reply, done) => {
    if (holdsNul(request.body)) done(problems.badRequest(DETAIL));
    else done();
  });
}

function routeOf(request: FastifyRequest): string {
  return request.routeOptions.url?.toLowerCase() ?? '';
}

/**
 * Whether any string in a parsed body, including member names, contains U+0000. `acceptBodies` limits the
 * depth of a body, so the recursion is safe.
 */
export function holdsNul(value: unknown): boolean {
  if (typeof value === 'string') return value.includes(NUL);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, member]) => name.includes(NUL) || holdsNul(member));
}
