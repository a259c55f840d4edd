import { SECOND_MS } from '@platform/time';
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteOptions } from 'fastify';
import type { Histogram } from 'prom-client';
import type { WaitingResponses } from '../connections/waiting-responses';
import type { HealthRegistry } from '../health/health';
import { logSafeUrl } from '../logging/log-safe';
import type { ServiceLogger } from '../logging/service-logger';
import type { Metrics } from '../metrics/metrics';
import { problems } from '../problems/problem';
import { originOf } from '../tracing/caller-trace';
import { isRecordingSpans, openSpan } from '../tracing/spans';
import { withTrace } from '../tracing/trace-context';
import type { TraceContext } from '../tracing/trace-context';

type Done = () => void;

type ResponseHook = (request: FastifyRequest, reply: FastifyReply, done: Done) => void;

/**
 * The collaborators of the hooks around every request: trace context, duration, one log line, and closing
 * connections while shutting down.
 */
interface RequestObservers {
  health: HealthRegistry;
  metrics: Metrics;
  logger: ServiceLogger;
  waiting: WaitingResponses;
  /** Templates of routes that programs poll. Successful requests to them are logged at `debug`. */
  polledRoutes: readonly string[];
}

/**
 * Adds the hooks around every request. Call it before any route is added, because a route only has the hooks
 * that were added before it.
 */
export function addRequestHooks(
  instance: FastifyInstance,
  { health, metrics, logger, waiting, polledRoutes }: RequestObservers,
): void {
  const durations = requestDurations(metrics);
  const ownHooks = new WeakSet<object>();
  const responseHook = (method: string, route: string, isLogged: boolean): ResponseHook => {
    const successLevel = polledRoutes.includes(route) ? 'debug' : 'info';
    const hook: ResponseHook = (request, reply, done) => {
      durations.observe({ method, route, status: reply.statusCode }, reply.elapsedTime / SECOND_MS);
      const level = reply.statusCode < 400 ? successLevel : 'info';
      if (isLogged && logger.logsRequests(level)) logger.request(requestLine(request, reply), level);
      done();
    };
    ownHooks.add(hook);
    return hook;
  };

  instance.addHook('onRequest', (request, reply, done) => {
    withTrace(requestTrace(request, reply), () => {
      done(framingError(request.raw));
    });
  });
  addResponseHeaders(instance, health, waiting);
  instance.addHook('onRoute', (route) => {
    const hook = responseHook(String(route.method), route.url, !route.url.startsWith('/health/'));
    // A HEAD route inherits the hooks of its GET route. The inherited hook is replaced, so that each request
    // is observed once.
    route.onResponse = [...hooksOf(route).filter((each) => !ownHooks.has(each)), hook];
  });
  const unmatchedHook = responseHook('*', 'unmatched', true);
  instance.addHook('onResponse', (request, reply, done) => {
    if (request.is404) unmatchedHook(request, reply, done);
    else done();
  });
}

/**
 * Returns an error for a request that Node's parser accepts but we refuse: HTTP/2.0, and no or several Host
 * headers (RFC 9112, 3.2).
 */
function framingError({ httpVersionMajor, httpVersion, headers }: FastifyRequest['raw']): Error | undefined {
  if (httpVersionMajor > 1) return problems.badRequest('Only HTTP/1.1 and HTTP/1.0 are supported.');
  if (httpVersion === '1.1' && headers.host === undefined)
    return problems.badRequest('The request names no host.');
  return headers.host?.includes(',')
    ? problems.badRequest('The request names more than one host.')
    : undefined;
}

/** Adds the headers that every response has. */
function addResponseHeaders(
  instance: FastifyInstance,
  health: HealthRegistry,
  waiting: WaitingResponses,
): void {
  instance.addHook('onSend', (request, reply, payload, done) => {
    // Browsers must not interpret JSON as a page or a script.
    reply.header('x-content-type-options', 'nosniff');
    // A response without an ETag is not cached, unless the route says otherwise.
    if (request.method === 'GET' && !reply.hasHeader('etag') && !reply.hasHeader('cache-control'))
      reply.header('cache-control', 'no-store');
    // For a body that is too large, Fastify sets `connection: close`. A client that sends its whole body
    // before it reads would then see a broken connection instead of the response. Without the header, Node
    // keeps reading, within the time limit of a request and while the body keeps the minimum rate.
    if (!request.raw.complete && reply.hasHeader('connection')) reply.removeHeader('connection');
    // Makes the client send its next request elsewhere, rather than on a connection about to close.
    if (health.isShuttingDown) reply.header('connection', 'close');
    done(null, waiting.admit(request, reply, payload));
  });
}

/** Returns the histogram of request durations, in seconds. */
export function requestDurations(metrics: Metrics): Histogram<'method' | 'route' | 'status'> {
  return metrics.histogram(
    'http_request_duration_seconds',
    'Time from the first byte of a request to the last byte of its response, by route template and status.',
    ['method', 'route', 'status'],
  );
}

function hooksOf(route: RouteOptions): ResponseHook[] {
  const hooks = route.onResponse ?? [];
  return Array.isArray(hooks) ? hooks : [hooks];
}

function requestLine(request: FastifyRequest, reply: FastifyReply): object {
  return {
    method: request.method,
    url: logSafeUrl(request.url),
    status: reply.statusCode,
    durationMs: Math.round(reply.elapsedTime * 100) / 100,
    traceId: request.id,
    spanId: spanIds.get(request),
  };
}

/** Span ids of requests in process; empty unless spans are recorded. */
const spanIds = new WeakMap<FastifyRequest, string>();

/**
 * Returns the trace in which a request is handled: the caller's if callers are trusted, else a new one. If
 * spans are recorded, it opens a span that ends with the response or the connection; probes get none.
 */
function requestTrace(request: FastifyRequest, reply: FastifyReply): TraceContext {
  const { parent, links } = originOf(request.headers, request.id);
  const { url: route } = request.routeOptions;
  if (!isRecordingSpans() || route?.startsWith('/health/') === true) return parent;
  const trace = openSpan({
    // The route, not the path: paths contain personal data and are unbounded in number.
    name: route === undefined ? request.method : `${request.method} ${route}`,
    kind: 'server',
    attributes: { 'http.request.method': request.method, 'http.route': route, 'url.scheme': 'http' },
    parent,
    links,
  });
  if (trace.spanId !== undefined) spanIds.set(request, trace.spanId);
  // Not Fastify's onResponse, which is not called if the caller disconnects.
  reply.raw.once('close', () => {
    endSpan(trace, reply);
  });
  return trace;
}

function endSpan({ span }: TraceContext, { raw }: FastifyReply): void {
  if (raw.writableFinished) {
    span?.set({ 'http.response.status_code': raw.statusCode });
    if (raw.statusCode >= 500) span?.fail(String(raw.statusCode));
  } else span?.fail('aborted');
  span?.end();
}
