import Fastify, { LogController } from 'fastify';
import type {
  FastifyError,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  HookHandlerDoneFunction,
} from 'fastify';
import {
  currentTraceId,
  newTrace,
  newTraceId,
  traceIdOf,
  traceOf,
  withTrace,
} from '@platform/service-defaults';
import { ZodError } from 'zod';

/** A failure with the status and the sentence its caller is to see. */
export class HttpProblem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    detail: string,
  ) {
    super(detail);
  }
}

/** What tells whether a neighbour can do its work now. */
export interface Readiness {
  isReady(): boolean;
}

/** A Fastify server with what every neighbour has: problem details, one short log line per answer, health routes. */
export function createNeighbourServer(name: string, logLevel: string, readiness: Readiness): FastifyInstance {
  const server = Fastify({
    logger: { level: logLevel, base: { name }, mixin: traceMember },
    genReqId: ({ headers }) => traceIdOf(headers.traceparent) ?? newTraceId(),
    logController: new LogController({ disableRequestLogging: true }),
    forceCloseConnections: 'idle',
  });
  server.setErrorHandler(answerProblem);
  server.setNotFoundHandler((_request, reply) =>
    sendProblem(reply, 404, 'Not Found', 'there is nothing at this address'),
  );
  // A neighbour records no spans, but what it does and publishes for a request stays in the caller's trace.
  server.addHook('onRequest', (request, _reply, done) => {
    withTrace(traceOf(request.headers) ?? newTrace(request.id), done);
  });
  server.addHook('onResponse', logAnswer);
  server.get('/health/live', () => ({ status: 'ok' }));
  server.get('/health/ready', (_request, reply) =>
    readiness.isReady()
      ? { status: 'ok' }
      : sendProblem(
          reply,
          503,
          'Service Unavailable',
          'the broker is not reachable or the process is stopping',
        ),
  );
  return server;
}

/** Refuses a request without an `Authorization: Bearer …` header. A neighbour cannot check our tokens' signatures (it has
 *  no key of the platform's); that the caller's token arrives is what the platform owes it. */
export function requireBearer(
  request: FastifyRequest,
  _reply: FastifyReply,
  done: HookHandlerDoneFunction,
): void {
  if (/^Bearer \S+$/i.test(request.headers.authorization ?? '')) done();
  else done(new HttpProblem(401, 'Unauthorized', 'an Authorization: Bearer header is required'));
}

/** The trace of whatever request or message a line is about. */
function traceMember(): object {
  const traceId = currentTraceId();
  return traceId === undefined ? {} : { traceId };
}

function sendProblem(reply: FastifyReply, status: number, title: string, detail: string): FastifyReply {
  return reply
    .code(status)
    .type('application/problem+json')
    .send({ type: 'about:blank', title, status, detail });
}

function answerProblem(
  error: FastifyError | Error,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  if (error instanceof HttpProblem) return sendProblem(reply, error.status, error.title, error.message);
  if (error instanceof ZodError) {
    const detail = error.issues
      .map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}`)
      .join('; ');
    return sendProblem(reply, 400, 'Bad Request', detail);
  }
  const status = 'statusCode' in error ? (error.statusCode ?? 500) : 500;
  if (status < 500) return sendProblem(reply, status, 'Bad Request', error.message);
  request.log.error({ err: error }, `${request.method} ${request.url} failed`);
  return sendProblem(reply, 500, 'Internal Server Error', 'the request failed; the log says why');
}

function logAnswer(request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void {
  if (!request.url.startsWith('/health/')) {
    const path = request.url.split('?', 1)[0] ?? '';
    const line = `${request.method} ${path} ${String(reply.statusCode)}`;
    // The answer may be out of the request's context by now.
    withTrace(newTrace(request.id), () => {
      request.log.info({ ms: Math.round(reply.elapsedTime) }, line);
    });
  }
  done();
}
