import type { FastifyReply } from 'fastify';

const JSON_TYPE = 'application/json; charset=utf-8';

/** Answers with JSON that already is text, exactly as it is: nothing parses or re-serialises it. */
export function sendJsonText(reply: FastifyReply, jsonText: string, status = 200): void {
  void reply.code(status).header('content-type', JSON_TYPE).send(jsonText);
}

/**
 * Answers 200 with a bare JSON string, quotes included. Needed because Nest sends a returned string as text/plain, unquoted.
 */
export function jsonStringReply(reply: FastifyReply, value: string): void {
  sendJsonText(reply, JSON.stringify(value));
}
