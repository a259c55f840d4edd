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
/** Room for the largest token accepted (16 KiB) and the other headers. */
const MAX_HEADER_BYTES = 32 * 1024;
const MAX_PARAM_LENGTH = 4_096;
/**
 * A request must have arrived completely within this time, its headers within the second one; slow ones get
 * 408.
 */
const REQUEST_TIMEOUT_MS = 60 * SECOND_MS;
const HEADERS_TIMEOUT_MS = 10 * SECOND_MS;
/** How often Node looks for requests past these times; every 30 s unless told otherwise. */
const TIMEOUT_CHECK_MS = SECOND_MS;
/**
 * How long an idle connection is kept. Longer than the 60 s after which common load balancers close it
 * themselves.
 */
const KEEP_ALIVE_MS = 72 * SECOND_MS;

type AdapterOptions = NonNullable<ConstructorParameters<typeof FastifyAdapter>[0]>;

/**
 * How Fastify runs in every service: tolerant routing, bounded sizes and times, its own errors as problems.
 */
export function fastifyOptions(connections: Connections, bodyLimitBytes = MEBIBYTE): AdapterOptions {
  const { refusals } = connections;
  return {
    logger: false,
    bodyLimit: bodyLimitBytes,
    // Requests that reach a stopping replica are still served; the answer closes their connection.
    return503OnClosing: false,
    serverFactory: (handler: Parameters<Connections['createServer']>[1]) =>
      connections.createServer(SERVER_OPTIONS, handler),
    routerOptions: { caseSensitive: false, ignoreTrailingSlash: true, maxParamLength: MAX_PARAM_LENGTH },
    rewriteUrl: (request: IncomingMessage) => routableUrl(request.url ?? '/'),
    genReqId: (request: IncomingMessage) => requestIdOf(request.headers),
    frameworkErrors: (error: FastifyError, request: FastifyRequest, reply: FastifyReply) => {
      answerFrameworkError(refusals, error, request, reply);
    },
    clientErrorHandler: (error: Error & { code?: string }, socket: Socket) => {
      answerClientError(refusals, error, socket);
    },
    // Middleware of Nest would cost every request a second router; hooks do its work here.
    skipMiddie: true,
  } as AdapterOptions;
}

const SERVER_OPTIONS = {
  maxHeaderSize: MAX_HEADER_BYTES,
  // Of two Authorization headers Node would drop one, and nobody could tell that there were two.
  joinDuplicateHeaders: true,
  // Without a Host header Node would answer by itself, and not with a problem.
  requireHostHeader: false,
  requestTimeout: REQUEST_TIMEOUT_MS,
  headersTimeout: HEADERS_TIMEOUT_MS,
  connectionsCheckingInterval: TIMEOUT_CHECK_MS,
  keepAliveTimeout: KEEP_ALIVE_MS,
};

const URI_TOO_LONG = 414;

/** Bad URLs and over-long parameters: Fastify raises them before routing, where no filter sees them. */
function answerFrameworkError(
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
 * What Node's HTTP parser refuses; there is no request yet, only a socket. Anything else is an unreadable
 * request: 400.
 */
const CLIENT_ERRORS: Partial<Record<string, { status: number; reason: RefusalReason }>> = {
  HPE_HEADER_OVERFLOW: { status: 431, reason: 'headers-too-large' },
  HPE_CHUNK_EXTENSIONS_OVERFLOW: { status: 413, reason: 'unreadable' },
  HPE_INVALID_METHOD: { status: 400, reason: 'unknown-method' },
  ERR_HTTP_REQUEST_TIMEOUT: { status: 408, reason: 'too-slow' },
};

function answerClientError(refusals: Refusals, error: Error & { code?: string }, socket: Socket): void {
  // The client is gone, or was refused before and sends on.
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
 * A request target that the router can match without regard to case.
 *
 * find-my-way decodes the path, folds a copy of it with `toLowerCase()` and cuts parameters out of the
 * original by the copy's positions. "İ" (U+0130) folds to two characters and shifts them; written as the
 * canonically equal "I" and combining dot it keeps its length. It is the only character that does this, so
 * parameters come out the same in Unicode normal form C.
 *
 * Of an absolute address, which a request may have as well (RFC 9112, 3.2.2), it is the path and query:
 * everybody reads those.
 */
export function routableUrl(address: string): string {
  const target = address.startsWith('/') ? address : address.replace(ABSOLUTE, '/');
  if (!target.includes('%')) return target;
  const queryAt = target.indexOf('?');
  const path = queryAt === -1 ? target : target.slice(0, queryAt);
  const query = queryAt === -1 ? '' : target.slice(queryAt);
  return path.replace(/%c4%b0/gi, 'I%CC%87') + query;
}
