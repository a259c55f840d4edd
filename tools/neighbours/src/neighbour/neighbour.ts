import {
  currentTraceId,
  newTrace,
  newTraceId,
  traceIdOf,
  traceOf,
  withTrace,
} from '@platform/service-defaults';
import type {
  FastifyError,
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  HookHandlerDoneFunction,
} from 'fastify';
import Fastify, { LogController } from 'fastify';
import { ZodError, z } from 'zod';

/** Maximum duration of a stop in ms; after it the process ends by force. */
const STOP_TIMEOUT_MS = 10_000;

/** Variables of every neighbour. */
export const neighbourConfigShape = {
  HOST: z.string().min(1).default('127.0.0.1'),
  LOG_LEVEL: z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
};

/** A TCP port; 0 asks the system for a free one. */
export const portVariable = z.coerce.number().int().min(0).max(65_535);

/** A neighbour, built but not listening. */
export interface Neighbour {
  server: FastifyInstance;
  /** Makes `/health/ready` respond 503 from now on. */
  markStopping(): void;
  /** Releases what the routes used (buses, ledgers), after the last response is sent. */
  release(): Promise<void>;
}

/**
 * Reads `environment` by `schema`, builds the neighbour, listens, and stops in order on SIGTERM and SIGINT
 * with exit code 0. If it cannot start, prints one line with the reason and exits with 1.
 */
export async function runNeighbour<C extends { HOST: string; PORT: number }>(
  schema: z.ZodType<C>,
  environment: NodeJS.ProcessEnv,
  build: (config: C) => Promise<Neighbour>,
): Promise<void> {
  const config = schema.safeParse(environment);
  if (!config.success) {
    // Names and rules only: a value may be a secret.
    const complaints = config.error.issues.map((issue) => `${issue.path.join('.')}: ${issue.message}`);
    return fail(`Configuration is not usable: ${complaints.join('; ')}`);
  }
  try {
    const neighbour = await build(config.data);
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void stop(neighbour));
    await neighbour.server.listen({ host: config.data.HOST, port: config.data.PORT });
  } catch (error) {
    fail(`Could not start: ${error instanceof Error ? error.message : String(error)}`);
  }
}

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(1);
}

async function stop(neighbour: Neighbour): Promise<void> {
  const { log } = neighbour.server;
  setTimeout(() => {
    log.error(`did not stop within ${String(STOP_TIMEOUT_MS)} ms`);
    process.exit(1);
  }, STOP_TIMEOUT_MS).unref();
  neighbour.markStopping();
  await neighbour.server.close();
  await neighbour.release();
  log.info('stopped');
  process.exit(0);
}

/** An error with the status, title and detail of its problem response. */
export class HttpProblem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    detail: string,
  ) {
    super(detail);
  }
}

/** Source of a neighbour's readiness. */
export interface Readiness {
  isReady(): boolean;
}

/**
 * Creates a Fastify server with the parts common to all neighbours: problem details, one short log line per
 * response, health routes.
 */
export function createNeighbourServer(name: string, logLevel: string, readiness: Readiness): FastifyInstance {
  const server = Fastify({
    logger: { level: logLevel, base: { name }, mixin: traceMember },
    genReqId: ({ headers }) => traceIdOf(headers.traceparent) ?? newTraceId(),
    logController: new LogController({ disableRequestLogging: true }),
    forceCloseConnections: 'idle',
  });
  server.setErrorHandler(respondWithProblem);
  server.setNotFoundHandler((_request, reply) =>
    sendProblem(reply, 404, 'Not Found', 'there is nothing at this address'),
  );
  // A neighbour records no spans, but its work for a request, including messages, stays in the caller's
  // trace.
  server.addHook('onRequest', (request, _reply, done) => {
    withTrace(traceOf(request.headers) ?? newTrace(request.id), done);
  });
  server.addHook('onResponse', logResponse);
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

/**
 * Refuses a request without an `Authorization: Bearer …` header. Only the presence of a token is checked: a
 * neighbour has no key of the platform to verify its signature.
 */
export function requireBearer(
  request: FastifyRequest,
  _reply: FastifyReply,
  done: HookHandlerDoneFunction,
): void {
  if (/^Bearer \S+$/i.test(request.headers.authorization ?? '')) done();
  else done(new HttpProblem(401, 'Unauthorized', 'an Authorization: Bearer header is required'));
}

/** Returns the trace ID of the current request or message as a member of a log line. */
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

function respondWithProblem(
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

function logResponse(request: FastifyRequest, reply: FastifyReply, done: HookHandlerDoneFunction): void {
  if (!request.url.startsWith('/health/')) {
    const path = request.url.split('?', 1)[0] ?? '';
    const line = `${request.method} ${path} ${String(reply.statusCode)}`;
    // This hook may run outside the request's trace.
    withTrace(newTrace(request.id), () => {
      request.log.info({ ms: Math.round(reply.elapsedTime) }, line);
    });
  }
  done();
}

/** Query of a ledger's listing: entries after a sequence number, and their maximum number. */
export const pageQuery = {
  after: z.coerce.number().int().min(0).default(0),
  limit: z.coerce.number().int().min(1).max(10_000).default(100),
};
