import type { FastifyRequest } from 'fastify';

const JSON_TEXT = Symbol('jsonText');

/** The JSON text of a request's body exactly as received, or undefined when the request had no JSON body. */
export function requestJsonText(request: FastifyRequest): string | undefined {
  return (request as FastifyRequest & { [JSON_TEXT]?: string })[JSON_TEXT];
}
