import type { Bus } from '@platform/contracts';
import type { SerializedEnvelope } from '@platform/messaging';
import type { EntityManager } from 'typeorm';

/** A stored event that may be published now. */
export interface StoredMessage {
  /** Position within the lane; a decimal, because it may exceed a double. */
  readonly sequence: string;
  readonly facilityId: number;
  readonly attempts: number;
  readonly envelope: SerializedEnvelope;
}

interface Row {
  sequence: string;
  facilityId: number;
  attempts: number;
  messageId: string;
  bus: Bus;
  exchange: string;
  headers: string;
  body: string;
}

// An event waits while an earlier one of its facility for the same exchange waits for its next attempt. Other exchanges
// go on: they lead to other queues, between which the broker keeps no order anyway.
const SELECT = `
  SELECT sequence, facility_id::float8 AS "facilityId", attempts, message_id AS "messageId", bus, exchange, headers, body
  FROM task.outbox AS event
  WHERE lane = $1 AND parked_at IS NULL AND bus = ANY ($2) AND NOT EXISTS (
    SELECT 1 FROM task.outbox AS refused
    WHERE refused.lane = event.lane AND refused.facility_id = event.facility_id
      AND refused.exchange = event.exchange AND refused.sequence <= event.sequence
      AND refused.parked_at IS NULL AND refused.attempts > 0 AND refused.next_attempt_at > now())
  ORDER BY sequence
  LIMIT $3`;

/** The lane's oldest events that may be published now, for the given buses. Call it with the lane acquired. */
export async function selectLaneBatch(
  manager: EntityManager,
  lane: number,
  buses: readonly Bus[],
  limit: number,
): Promise<StoredMessage[]> {
  const rows: Row[] = await manager.query(SELECT, [lane, buses, limit]);
  return rows.map(({ sequence, facilityId, attempts, headers, ...envelope }) => ({
    sequence,
    facilityId,
    attempts,
    envelope: { ...envelope, headers: JSON.parse(headers) as SerializedEnvelope['headers'] },
  }));
}
