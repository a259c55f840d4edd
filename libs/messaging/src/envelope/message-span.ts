import type { SpanAttributes, SpanOptions, TraceContext } from '@platform/service-defaults';
import type { SerializedEnvelope } from './create-envelope';
import { messageTrace } from './trace-headers';

/** What every span about a message tells. Source: OpenTelemetry semantic conventions for messaging and RabbitMQ. */
function messageAttributes(operation: { name: string; type: string }, destination: string): SpanAttributes {
  return {
    'messaging.system': 'rabbitmq',
    'messaging.operation.name': operation.name,
    'messaging.operation.type': operation.type,
    'messaging.destination.name': destination,
  };
}

/** The span of a publish. It hangs under what caused the message, which may be long over: the envelope says what that was. */
export function publishSpan(envelope: SerializedEnvelope): SpanOptions {
  return {
    name: `publish ${envelope.exchange}`,
    kind: 'producer',
    parent: messageTrace(envelope.headers) ?? undefined,
    attributes: {
      ...messageAttributes({ name: 'publish', type: 'send' }, envelope.exchange),
      'messaging.message.id': envelope.messageId,
    },
  };
}

/** The span of a request over the bus, its answer included. */
export function requestSpan(exchange: string): SpanOptions {
  const attributes = messageAttributes({ name: 'request', type: 'send' }, exchange);
  return { name: `request ${exchange}`, kind: 'client', attributes };
}

/** The span of one attempt to process a delivery. @param parent the trace that it came in */
export function processSpan(queue: string, messageId: unknown, parent: TraceContext | null): SpanOptions {
  return {
    name: `process ${queue}`,
    kind: 'consumer',
    parent,
    attributes: {
      ...messageAttributes({ name: 'process', type: 'process' }, queue),
      'messaging.message.id': typeof messageId === 'string' ? messageId.slice(0, 64) : undefined,
    },
  };
}
