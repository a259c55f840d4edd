import type { FastifyReply, FastifyRequest } from 'fastify';
import { isRecordingSpans, openSpan } from '../tracing/spans';
import { newTrace, traceOf } from '../tracing/trace-context';
import type { TraceContext } from '../tracing/trace-context';

/** Spans of requests in process; empty unless spans are recorded. */
const spanIds = new WeakMap<FastifyRequest, string>();

/** The trace in which a request is handled: that of its headers, or one of its own. Where spans are recorded it gets one, which ends
 *  with the answer or with the connection; probes get none. */
export function requestTrace(request: FastifyRequest, reply: FastifyReply): TraceContext {
  const parent = traceOf(request.headers) ?? newTrace(request.id);
  const { url: route } = request.routeOptions;
  if (!isRecordingSpans() || route?.startsWith('/health/') === true) return parent;
  const trace = openSpan({
    // The route, not the path: paths name people, and there are too many of them.
    name: route === undefined ? request.method : `${request.method} ${route}`,
    kind: 'server',
    attributes: { 'http.request.method': request.method, 'http.route': route, 'url.scheme': 'http' },
    parent,
  });
  if (trace.spanId !== undefined) spanIds.set(request, trace.spanId);
  // Not Fastify's onResponse: it is not called for a request whose caller went away.
  reply.raw.once('close', () => {
    endSpan(trace, reply);
  });
  return trace;
}

/** The span of a request; undefined unless spans are recorded. */
export function spanIdOf(request: FastifyRequest): string | undefined {
  return spanIds.get(request);
}

function endSpan({ span }: TraceContext, { raw }: FastifyReply): void {
  if (raw.writableFinished) {
    span?.set({ 'http.response.status_code': raw.statusCode });
    if (raw.statusCode >= 500) span?.fail(String(raw.statusCode));
  } else span?.fail('aborted');
  span?.end();
}
