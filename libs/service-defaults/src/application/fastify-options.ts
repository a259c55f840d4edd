import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { SECOND_MS } from '@platform/time';
import type { FastifyAdapter } from '@nestjs/platform-fastify';
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify';
import type { Connections } from '../connections/connections';
import { refuseConnection } from '../connections/refuse-connection';
import type { RefusalReason, Refusals } from '../connections/refusals';
import { pathOf } from '../logging/log-safe';
import { defaultProblem, PROBLEM_JSON, renderProblem } from '../problems/problem';
import { requestIdOf } from '../tracing/caller-trace';

const MEBIBYTE = 1024 * 1024;
/** Maximum bytes of headers: the largest accepted token (16 KiB) and the other headers. */
const MAX_HEADER_BYTES = 32 * 1024;
const MAX_PARAM_LENGTH = 4_096;
/** Time limits for receiving a whole request and for receiving its headers; slower requests get 408. */
const REQUEST_TIMEOUT_MS = 60 * SECOND_MS;
const HEADERS_TIMEOUT_MS = 10 * SECOND_MS;
/** Interval at which Node checks these limits; its default is 30 s. */
const TIMEOUT_CHECK_MS = SECOND_MS;
/** Time that an idle connection is kept. Longer than the 60 s after which common load balancers close it. */
const KEEP_ALIVE_MS = 72 * SECOND_MS;

type AdapterOptions = NonNullable<ConstructorParameters<typeof FastifyAdapter>[0]>;

/**
 * Returns the Fastify options of every service: tolerant routing, bounded sizes and times, and Fastify's own
 * errors as problems.
 */
export function fastifyOptions(connections: Connections, bodyLimitBytes = MEBIBYTE): AdapterOptions {
  const { refusals } = connections;
  return {
    logger: false,
    bodyLimit: bodyLimitBytes,
    // A stopping replica still serves requests; the response closes their connection.
    return503OnClosing: false,
    serverFactory: (handler: Parameters<Connections['createServer']>[1]) =>
      connections.createServer(SERVER_OPTIONS, handler),
    routerOptions: { caseSensitive: false, ignoreTrailingSlash: true, maxParamLength: MAX_PARAM_LENGTH },
    rewriteUrl: (request: IncomingMessage) => routableUrl(request.url ?? '/'),
    genReqId: (request: IncomingMessage) => requestIdOf(request.headers),
    frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      respondToFrameworkError(refusals, error, request, reply);
    },
    clientErrorHandler: (error: Error & { code?: string }, socket: Socket) => {
      respondToClientError(refusals, error, socket);
    },
    // Nest middleware would add a second router to every request; we use hooks instead.
    skipMiddie: true,
  } as AdapterOptions;
}

const SERVER_OPTIONS = {
  maxHeaderSize: MAX_HEADER_BYTES,
  // Without this, Node would silently drop the second of two Authorization headers.
  joinDuplicateHeaders: true,
  // Otherwise Node would respond to a missing Host header itself, without a problem document.
  requireHostHeader: false,
  requestTimeout: REQUEST_TIMEOUT_MS,
  headersTimeout: HEADERS_TIMEOUT_MS,
  connectionsCheckingInterval: TIMEOUT_CHECK_MS,
  keepAliveTimeout: KEEP_ALIVE_MS,
};

const URI_TOO_LONG = 414;

/**
 * Responds to bad URLs and too long parameters, which Fastify reports before routing, where no filter runs.
 */
function respondToFrameworkError(
  refusals: Refusals,
  error: FastifyError,
  request: FastifyRequest,
  reply: FastifyReply,
): void {
  const problem = defaultProblem(error.statusCode ?? 400);
  refusals.count(problem.status === URI_TOO_LONG ? 'url-too-long' : 'bad-url');
  void reply
    .code(problem.status)
    .header('content-type', PROBLEM_JSON)
    .header('x-content-type-options', 'nosniff')
    .send(renderProblem(problem, pathOf(request.raw.url ?? '/'), request.id));
}

/**
 * Status and reason by the error code of Node's HTTP parser. There is no request yet, only a socket. Any
 * other code is an unreadable request: 400.
 */
const CLIENT_ERRORS: Partial<Record<string, { status: number; reason: RefusalReason }>> = {
  HPE_HEADER_OVERFLOW: { status: 431, reason: 'headers-too-large' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, reason: 'unreadable' },
  HPE_INVALID_METHOD: { status: 400, reason: 'unknown-method' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, reason: 'too-slow' },
};

function respondToClientError(refusals: Refusals, error: Error & { code?: string }, socket: Socket): void {
  // The client has gone, or was refused already and keeps sending.
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const { status, reason } = CLIENT_ERRORS[error.code ?? ''] ?? { status: 400, reason: 'unreadable' };
  refusals.count(reason);
  refuseConnection(socket, status);
}

const ABSOLUTE = /^https?:\/\/[^/?#]*\/?/i;

/**
 * Returns a request target that the router can match case-insensitively.
 *
 * find-my-way decodes the path, lowercases a copy of it, and cuts the parameters out of the original at the
 * copy's positions. "İ" (U+0130) lowercases to two characters, which shifts these positions. Rewritten as the
 * canonically equivalent "I" and combining dot, it keeps its length. It is the only such character, so
 * parameters come out unchanged in Unicode normal form C.
 *
 * A request may also have an absolute URL as its target (RFC 9112, 3.2.2). Then only the path and the query
 * of that URL are returned.
 */
export function routableUrl(address: string): string {
  const target = address.startsWith('/') ? address : address.replace(ABSOLUTE, '/');
  if (!target.includes('%')) return target;
  const queryAt = target.indexOf('?');
  const path = queryAt === -1 ? target : target.slice(0, queryAt);
  const query = queryAt === -1 ? '' : target.slice(queryAt);
  return path.replace(/%c4%b0/gi, 'I%CC%87') + query;
}
