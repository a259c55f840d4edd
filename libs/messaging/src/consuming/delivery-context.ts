import { createHash, randomUUID } from 'node:crypto';
import type { ConsumeMessage } from 'amqplib';
import { isGuid } from '../envelope/create-envelope';
import type { ReceivedEnvelope } from '../envelope/read-envelope';
import { originalExchange } from '../headers/delivery-headers';
import type { DeliveryContext } from './endpoint';
import type { ReceivedRequest } from './response-sender';

/** Returns the delivery data that a handler receives with the message. */
export function contextOf({ delivery, envelope, conversationId }: ReceivedRequest): DeliveryContext {
  const { messageId, correlationId } = envelope;
  const digest = createHash('sha256').update(canonicalJson(envelope.message)).digest('base64url');
  // 22 characters (132 bits) keep the rows of the inbox short.
  const contentHash = digest.slice(0, 22);
  return { messageId: messageId ?? contentId(delivery), contentHash, correlationId, conversationId };
}

/**
 * Returns JSON with sorted object members, because a repeated message may list them in another order. Body
 * depth is limited, so the recursion is safe.
 */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
}

/** Returns the id of an event whose sender gave none: a hash of its exchange and content. */
function contentId(delivery: ConsumeMessage): string {
  const hash = createHash('sha256')
    .update(`${originalExchange(delivery)}\0`)
    .update(delivery.content);
  return `content-${hash.digest('hex')}`;
}

/**
 * Returns the conversation id or else the message id, whichever is a GUID; a random GUID if neither is. Other
 * clients may use ids of another form, but MassTransit requires a GUID here.
 */
export function conversationOf({ conversationId, messageId }: ReceivedEnvelope): string {
  return [conversationId, messageId].find(isGuid) ?? randomUUID();
}
