import { ENVELOPE_CONTENT_TYPE, type SerializedEnvelope } from '../envelope/create-envelope';
import type { ConfirmPublisher } from './confirm-publisher';

/** Publishes an envelope to the exchange of its type. @throws as {@link ConfirmPublisher.publish} */
export async function publishSerialized(
  publisher: ConfirmPublisher,
  envelope: SerializedEnvelope,
  timeoutMs: number,
  properties: { readonly correlationId?: string; readonly replyTo?: string } = {},
): Promise<void> {
  const options = {
    ...properties,
    contentType: ENVELOPE_CONTENT_TYPE,
    messageId: envelope.messageId,
    persistent: true,
    headers: { ...envelope.headers },
  };
  const content = Buffer.from(envelope.body);
  const message = { exchange: envelope.exchange, routingKey: '', content, options, declareFanout: true };
  await publisher.publish(message, timeoutMs);
}
