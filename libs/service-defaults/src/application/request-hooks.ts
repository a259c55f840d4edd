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
 * What happens around every request: trace context, duration, one log line, and goodbye while shutting down.
 */
interface RequestObservers {
  health: HealthRegistry;
  metrics: Metrics;
  logger: ServiceLogger;
  waiting: WaitingResponses;
  /** Templates of routes that programs poll: what succeeds there is logged at `debug`. */
  polledRoutes: readonly string[];
}

/** Adds the hooks; before any route, because routes get theirs when they are added. */
export function addRequestHooks(
  instance: FastifyInstance,
  { health, metrics, logger, waiting, polledRoutes }: RequestObservers,
): void {
  const durations = requestDurations(metrics);
  const own = new WeakSet<object>();
  const answered = (method: string, route: string, isLogged: boolean): ResponseHook => {
    const successLevel = polledRoutes.includes(route) ? 'debug' : 'info';
    const hook: ResponseHook = (request, reply, done) => {
      durations.observe({ method, route, status: reply.statusCode }, reply.elapsedTime / SECOND_MS);
      const level = reply.statusCode < 400 ? successLevel : 'info';
      if (isLogged && logger.logsRequests(level)) logger.request(requestLine(request, reply), level);
      done();
    };
    own.add(hook);
    return hook;
  };

  instance.addHook('onRequest', (request, reply, done) => {
    withTrace(requestTrace(request, reply), () => {
      done(misframed(request.raw));
    });
  });
  addResponseHeaders(instance, health, waiting);
  instance.addHook('onRoute', (route) => {
    const hook = answered(String(route.method), route.url, !route.url.startsWith('/health/'));
    // A HEAD route is derived from its GET route, hooks included.
    route.onResponse = [...hooksOf(route).filter((each) => !own.has(each)), hook];
  });
  const unrouted = answered('*', 'unmatched', true);
  instance.addHook('onResponse', (request, reply, done) => {
    if (request.is404) unrouted(request, reply, done);
    else done();
  });
}

/** What Node's parser lets pass: HTTP/2.0, and any number of Host headers but one (RFC 9112, 3.2). */
function misframed({ httpVersionMajor, httpVersion, headers }: FastifyRequest['raw']): Error | undefined {
  if (httpVersionMajor > 1) return problems.badRequest('Only HTTP/1.1 and HTTP/1.0 are spoken here.');
  if (httpVersion === '1.1' && headers.host === undefined)
    return problems.badRequest('The request names no host.');
  return headers.host?.includes(',')
    ? problems.badRequest('The request names more than one host.')
    : undefined;
}

/** What every response says of itself. */
function addResponseHeaders(
  instance: FastifyInstance,
  health: HealthRegistry,
  waiting: WaitingResponses,
): void {
  instance.addHook('onSend', (request, reply, payload, done) => {
    // No browser may take JSON for a page or a script.
    reply.header('x-content-type-options', 'nosniff');
    // What cannot be asked for again by its ETag is not kept, unless the route says otherwise.
    if (request.method === 'GET' && !reply.hasHeader('etag') && !reply.hasHeader('cache-control'))
      reply.header('cache-control', 'no-store');
    // Fastify closes after a body that is too large, whatever the status says, and a client that sends all of
    // its body first would see a broken connection instead of the response. Node reads on, for as long as a
    // request may take and while it keeps the minimum rate.
    if (!request.raw.complete && reply.hasHeader('connection')) reply.removeHeader('connection');
    // The client then takes its next request elsewhere instead of to a connection about to close.
    if (health.isShuttingDown) reply.header('connection', 'close');
    done(null, waiting.admit(request, reply, payload));
  });
}

/** Durations of requests, in seconds. */
export function requestDurations(metrics: Metrics): Histogram<'method' | 'route' | 'status'> {
  return metrics.histogram(
    'http_request_duration_seconds',
    'Time from the first byte of a request to the last byte of its answer, by route template and status.',
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

/** Spans of requests in process; empty unless spans are recorded. */
const spanIds = new WeakMap<FastifyRequest, string>();

/**
 * The trace in which a request is handled: that of its headers where callers are trusted, or one of its own.
 * Where spans are recorded it gets one, which ends with the answer or with the connection; probes get none.
 */
function requestTrace(request: FastifyRequest, reply: FastifyReply): TraceContext {
  const { parent, links } = originOf(request.headers, request.id);
  const { url: route } = request.routeOptions;
  if (!isRecordingSpans() || route?.startsWith('/health/') === true) return parent;
  const trace = openSpan({
    // The route, not the path: paths name people, and there are too many of them.
    name: route === undefined ? request.method : `${request.method} ${route}`,
    kind: 'server',
    attributes: { 'http.request.method': request.method, 'http.route': route, 'url.scheme': 'http' },
    parent,
    links,
  });
  if (trace.spanId !== undefined) spanIds.set(request, trace.spanId);
  // Not Fastify's onResponse: it is not called for a request whose caller went away.
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
