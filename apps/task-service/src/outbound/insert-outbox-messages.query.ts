import { queryPrepared } from '@platform/database';
import type { SerializedEnvelope } from '@platform/messaging';
import type { EntityManager } from 'typeorm';

/** One row of the message store to be. */
export interface OutboxMessage {
  readonly lane: number;
  readonly facilityId: number;
  readonly envelope: SerializedEnvelope;
}

const INSERT = {
  name: 'insert-outbox-messages',
  text: `
  INSERT INTO task.outbox (lane, facility_id, message_id, bus, exchange, headers, body)
  SELECT lane, facility_id, message_id, bus, exchange, headers, body
  FROM unnest($1::smallint[], $2::bigint[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::text[])
    WITH ORDINALITY AS event (lane, facility_id, message_id, bus, exchange, headers, body, position)
  ORDER BY position`,
};

/** Stores the messages in the caller's transaction; a facility's rows are published in the order given here. */
export async function insertOutboxMessages(
  manager: EntityManager,
  messages: readonly OutboxMessage[],
): Promise<void> {
  const column = <T>(pick: (message: OutboxMessage) => T): T[] => messages.map(pick);
  await queryPrepared(manager, INSERT, [
    column((message) => message.lane),
    column((message) => message.facilityId),
    column((message) => message.envelope.messageId),
    column((message) => message.envelope.bus),
    column((message) => message.envelope.exchange),
    column((message) => JSON.stringify(message.envelope.headers)),
    column((message) => message.envelope.body),
  ]);
}
