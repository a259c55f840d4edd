import { exchangeName, messageTypeUrn } from '../envelope/message-type';
import type { EndpointHandler } from './endpoint';

/** The handler for a message that announces `messageTypes`, the most specific type first. A message that announces nothing is
 *  known by the exchange it came through or, sent straight to a queue with one handler, by the queue. Null when it is nobody's. */
export function selectHandler(
  handlers: readonly EndpointHandler[],
  message: { messageTypes: readonly string[]; exchange: string; namespace: string },
): EndpointHandler | null {
  const { messageTypes, exchange, namespace } = message;
  for (const type of messageTypes) {
    const handler = handlers.find(({ contract: { name } }) => namesOf(namespace, name).includes(type));
    if (handler !== undefined) return handler;
  }
  if (messageTypes.length > 0) return null;
  const byExchange = handlers.find(({ contract }) => exchangeName(namespace, contract.name) === exchange);
  return byExchange ?? (handlers.length === 1 ? (handlers[0] ?? null) : null);
}

/** MassTransit writes the URN; a raw message's AMQP type may be the exchange's or the bare name as well. */
function namesOf(namespace: string, name: string): string[] {
  return [messageTypeUrn(namespace, name), exchangeName(namespace, name), name];
}
