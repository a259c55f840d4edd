import type { Bus } from '@platform/contracts';
import type { SerializedEnvelope } from '@platform/messaging';
import type { EntityManager } from 'typeorm';

/** A stored event that may be published now. */
export interface StoredMessage {
  readonly lane: number;
  /** Position within the lane; a decimal, because it may exceed a double. */
  readonly sequence: string;
  readonly facilityId: number;
  readonly attempts: number;
  readonly envelope: SerializedEnvelope;
}

interface Row {
  lane: number;
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
// go on: they lead to other queues, between which the broker keeps no order anyway. Each lane is read by itself, from its head on:
// however long the backlog is, no more than the batch is touched.
const SELECT = `
  SELECT head.* FROM unnest($1::smallint[]) AS acquired (lane) CROSS JOIN LATERAL (
    SELECT lane, sequence, facility_id::float8 AS "facilityId", attempts, message_id AS "messageId", bus, exchange, headers, body
    FROM task.outbox AS event
    WHERE event.lane = acquired.lane AND parked_at IS NULL AND bus = ANY ($2) AND NOT EXISTS (
      SELECT 1 FROM task.outbox AS refused
      WHERE refused.lane = event.lane AND refused.facility_id = event.facility_id
        AND refused.exchange = event.exchange AND refused.sequence <= event.sequence
        AND refused.parked_at IS NULL AND refused.attempts > 0 AND refused.next_attempt_at > now())
    ORDER BY sequence
    LIMIT $3) AS head
  ORDER BY sequence`;

/** The oldest events of each lane that may be published now, for the given buses, in order. Call it with the lanes acquired, in a
 *  later statement: one that began earlier would see again what their last holder has published.
 *  @param limitPerLane most events of one lane */
export async function selectBatch(
  manager: EntityManager,
  lanes: readonly number[],
  buses: readonly Bus[],
  limitPerLane: number,
): Promise<StoredMessage[]> {
  const rows: Row[] = await manager.query(SELECT, [lanes, buses, limitPerLane]);
  return rows.map(({ lane, sequence, facilityId, attempts, headers, ...envelope }) => ({
    lane,
    sequence,
    facilityId,
    attempts,
    envelope: { ...envelope, headers: JSON.parse(headers) as SerializedEnvelope['headers'] },
  }));
}
