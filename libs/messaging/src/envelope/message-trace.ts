import {
  currentTrace,
  type SpanAttributes,
  type SpanOptions,
  type TraceContext,
  traceHeaders,
  traceOf,
} from '@platform/service-defaults';
import type { SerializedEnvelope } from './create-envelope';

/** MassTransit's name for the W3C `traceparent`, in the headers of AMQP and of the envelope. */
const MASSTRANSIT_TRACEPARENT = 'MT-Activity-Id';

type Headers = Readonly<Record<string, unknown>>;

/**
 * Returns the W3C and MassTransit headers that carry a trace (the current one unless given) to a message's
 * receivers; none outside a trace.
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
 * Returns the trace of a received message, from the first of the sources that holds one; null if none does.
 * Pass the AMQP headers before the envelope's, because a forwarder writes only the AMQP headers.
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
 * The span of a publish. Its parent is the trace in the envelope's headers: whatever caused the message,
 * possibly long ago.
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

/** The span of a request over the bus, from sending it to receiving its response. */
export function requestSpan(exchange: string): SpanOptions {
  const attributes = messageAttributes('request', 'send', exchange);
  return { name: `request ${exchange}`, kind: 'client', attributes };
}

/**
 * The span of processing one delivery.
 * @param parent the trace that the message carries
 */
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
 * Returns the attributes common to all message spans. Source: OpenTelemetry semantic conventions for
 * messaging and RabbitMQ.
 */
function messageAttributes(name: string, type: string, destination: string): SpanAttributes {
  return {
    'messaging.system': 'rabbitmq',
    'messaging.operation.name': name,
    'messaging.operation.type': type,
    'messaging.destination.name': destination,
  };
}
