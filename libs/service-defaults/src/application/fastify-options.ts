import { STATUS_CODES } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import { pathOf } from '../logging/log-safe';
import { defaultProblem, PROBLEM_JSON, renderProblem } from '../problems/problem';
import { newTraceId, traceIdOf } from '../tracing/trace-context';

const MEBIBYTE = 1024 * 1024;
/** Room for the largest token accepted (16 KiB) and the other headers. */
const MAX_HEADER_BYTES = 32 * 1024;
const MAX_PARAM_LENGTH = 4_096;
/** A request must have arrived completely within this time; slow ones get 408. */
const REQUEST_TIMEOUT_MS = 60_000;

type AdapterOptions = NonNullable<ConstructorParameters<typeof FastifyAdapter>[0]>;

/** How Fastify runs in every service: tolerant routing, bounded sizes and times, its own errors as problems. */
export function fastifyOptions(bodyLimitBytes = MEBIBYTE): AdapterOptions {
  return {
    logger: false,
    bodyLimit: bodyLimitBytes,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Requests that reach a stopping replica are still served; the answer closes their connection.
    return503OnClosing: false,
    // Of two Authorization headers Node would drop one, and nobody could tell that there were two.
    // Without a Host header Node would answer by itself, and not with a problem.
    http: { maxHeaderSize: MAX_HEADER_BYTES, joinDuplicateHeaders: true, requireHostHeader: false },
    routerOptions: { caseSensitive: false, ignoreTrailingSlash: true, maxParamLength: MAX_PARAM_LENGTH },
    rewriteUrl: (request: IncomingMessage) => routableUrl(request.url ?? '/'),
    genReqId: (request: IncomingMessage) => traceIdOf(request.headers.traceparent) ?? newTraceId(),
    frameworkErrors: answerFrameworkError,
    clientErrorHandler: answerClientError,
    // Middleware of Nest would cost every request a second router; hooks do its work here.
    skipMiddie: true,
  } as AdapterOptions;
}

/** Bad URLs and over-long parameters: Fastify raises them before routing, where no filter sees them. */
function answerFrameworkError(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const problem = defaultProblem(error.statusCode ?? 400);
  void reply
    .code(problem.status)
    .header('content-type', PROBLEM_JSON)
    .header('x-content-type-options', 'nosniff')
    .send(renderProblem(problem, pathOf(request.raw.url ?? '/'), request.id));
}

/** Statuses of what Node's HTTP parser refuses; there is no request yet, only a socket. */
const CLIENT_ERROR_STATUS: Partial<Record<string, number>> = {
  HPE_HEADER_OVERFLOW: 431,
  ERR_HTTP_REQUEST_TIMEOUT: 408,
};

function answerClientError(error: Error & { code?: string }, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status = CLIENT_ERROR_STATUS[error.code ?? ''] ?? 400;
  const body = renderProblem(defaultProblem(status), '/', newTraceId());
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? 'Bad Request'}`,
    `Content-Type: ${PROBLEM_JSON}; charset=utf-8`,
    'X-Content-Type-Options: nosniff',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

const ABSOLUTE = /^https?:\/\/[^/?#]*\/?/i;

/**
 * A request target that the router can match without regard to case.
 *
 * find-my-way decodes the path, folds a copy of it with `toLowerCase()` and cuts parameters out of the original by the copy's
 * positions. "İ" (U+0130) folds to two characters and shifts them; written as the canonically equal "I" and combining dot it
 * keeps its length. It is the only character that does this, so parameters come out the same in Unicode normal form C.
 *
 * Of an absolute address, which a request may have as well (RFC 9112, 3.2.2), it is the path and query: everybody reads those.
 */
export function routableUrl(address: string): string {
  const target = address.startsWith('/') ? address : address.replace(ABSOLUTE, '/');
  if (!target.includes('%')) return target;
  const queryAt = target.indexOf('?');
  const path = queryAt === -1 ? target : target.slice(0, queryAt);
  const query = queryAt === -1 ? '' : target.slice(queryAt);
  return path.replace(/%c4%b0/gi, 'I%CC%87') + query;
}
