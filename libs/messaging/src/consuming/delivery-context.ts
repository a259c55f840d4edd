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
  const digest = createHash('sha256').update(canonicalJson(envelope.message)).digest('base64url');
  // 132 bits: a row of the inbox stays short.
  const contentHash = digest.slice(0, 22);
  return { messageId: messageId ?? contentId(delivery), contentHash, correlationId, conversationId };
}

/**
 * JSON with the members of each object in one order: a sender may write them anew in another. The depth of a
 * body is bounded.
 */
function canonicalJson(value: unknown): string {
  return JSON.stringify(value, (_name, member: unknown) =>
    typeof member === 'object' && member !== null && !Array.isArray(member)
      ? Object.fromEntries(Object.entries(member).sort(([a], [b]) => (a < b ? -1 : 1)))
      : member,
  );
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
