import {
  currentTrace,
  type SpanAttributes,
  type SpanOptions,
  type TraceContext,
  traceHeaders,
  traceOf,
} from '@platform/service-defaults';
import type { SerializedEnvelope } from './create-envelope';

/** MassTransit's name for the W3C `traceparent`, in the message's headers and in the envelope. */
const MASSTRANSIT_TRACEPARENT = 'MT-Activity-Id';

type Headers = Readonly<Record<string, unknown>>;

/**
 * The headers that carry a trace (the current one unless given) to the receivers of a message: W3C's and
 * MassTransit's. None outside of a trace.
 */
export function messageTraceHeaders(
  trace: TraceContext | undefined = currentTrace(),
): Record<string, string> {
  const { traceparent, tracestate } = traceHeaders(trace);
  if (traceparent === undefined) return {};
  const headers = { traceparent, [MASSTRANSIT_TRACEPARENT]: traceparent };
  return tracestate === undefined ? headers : { ...headers, tracestate };
}

/**
 * The trace of a received message, from the first headers that hold one: the transport's before the
 * envelope's, because whoever forwarded the message wrote those last. Null when none does.
 */
export function messageTrace(...sources: readonly (Headers | undefined)[]): TraceContext | null {
  for (const headers of sources) {
    if (headers === undefined) continue;
    const trace = traceOf(headers) ?? traceOf({ ...headers, traceparent: headers[MASSTRANSIT_TRACEPARENT] });
    if (trace !== null) return trace;
  }
  return null;
}

/**
 * The span of a publish. Its parent is what caused the message, which may be long over: the envelope's
 * headers name it.
 */
export function publishSpan(envelope: SerializedEnvelope): SpanOptions {
  return {
    name: `publish ${envelope.exchange}`,
    kind: 'producer',
    parent: messageTrace(envelope.headers) ?? undefined,
    attributes: {
      ...messageAttributes('publish', 'send', envelope.exchange),
      'messaging.message.id': envelope.messageId,
    },
  };
}

/** The span of a request over the bus, its response included. */
export function requestSpan(exchange: string): SpanOptions {
  const attributes = messageAttributes('request', 'send', exchange);
  return { name: `request ${exchange}`, kind: 'client', attributes };
}

/** The span of one attempt to process a delivery. @param parent the trace that the message came in */
export function processSpan(queue: string, messageId: unknown, parent: TraceContext | null): SpanOptions {
  return {
    name: `process ${queue}`,
    kind: 'consumer',
    parent,
    attributes: {
      ...messageAttributes('process', 'process', queue),
      'messaging.message.id': typeof messageId === 'string' ? messageId.slice(0, 64) : undefined,
    },
  };
}

/**
 * What every span about a message tells. Source: OpenTelemetry semantic conventions for messaging and
 * RabbitMQ.
 */
function messageAttributes(name: string, type: string, destination: string): SpanAttributes {
  return {
    'messaging.system': 'rabbitmq',
    'messaging.operation.name': name,
    'messaging.operation.type': type,
    'messaging.destination.name': destination,
  };
}
