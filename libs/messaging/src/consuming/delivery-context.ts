import { createHash, randomUUID } from 'node:crypto';
import type { ConsumeMessage } from 'amqplib';
import { isGuid } from '../envelope/create-envelope';
import type { ReceivedEnvelope } from '../envelope/read-envelope';
import { originalExchange } from './delivery-headers';
import type { DeliveryContext } from './endpoint';
import type { ReceivedRequest } from './response-sender';

/** What a delivery's handler learns besides the message. */
export function contextOf({ delivery, envelope, conversationId }: ReceivedRequest): DeliveryContext {
  const { messageId, correlationId } = envelope;
  return { messageId: messageId ?? contentId(delivery), correlationId, conversationId };
}

/** Identity of an event whose sender gave it none: the same fact at the same address. */
function contentId(delivery: ConsumeMessage): string {
  const hash = createHash('sha256')
    .update(`${originalExchange(delivery)}\0`)
    .update(delivery.content);
  return `content-${hash.digest('hex')}`;
}

/** A client of another kind may number its messages as it likes; a conversation has a GUID. */
export function conversationOf({ conversationId, messageId }: ReceivedEnvelope): string {
  return [conversationId, messageId].find(isGuid) ?? randomUUID();
}
