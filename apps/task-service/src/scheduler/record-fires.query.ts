import { queryPrepared } from '@platform/database';
import type { EntityManager } from 'typeorm';
import type { NewOutboxMessage } from '../outbound/outbox-message.entity';
import type { DueFire } from './due-fire';

/** A decided fire with the message that carries it. */
export interface DecidedFire extends DueFire {
  readonly facilityId: number;
  readonly message: NewOutboxMessage;
}

// One round trip for everything a batch writes. Moving the trigger does not depend on the insert: an occurrence that fired
// before moves on all the same, but only a new one has its message stored. The triggers are found by $1: a plan that was made
// for a small table joins the fires with all of a large one.
const RECORD = {
  name: 'record-fires',
  text: `
  WITH fire AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::boolean[], $4::integer[], $5::uuid[], $6::timestamptz[],
        $7::smallint[], $8::text[], $9::timestamptz[], $10::json[], $11::json[]) WITH ORDINALITY
      AS fire (facility_id, scheduled_at, misfired, missed_count, message_id, next_fire_at,
        partition, message_type, sent_at, trace_headers, message, position)
  ), moved AS (
    UPDATE task.triggers AS trigger
    SET next_fire_at = fire.next_fire_at, previous_fire_at = fire.scheduled_at
    FROM fire WHERE trigger.facility_id = ANY ($1) AND trigger.facility_id = fire.facility_id
  ), recorded AS (
    INSERT INTO task.trigger_fires (facility_id, scheduled_at, misfired, missed_count, message_id)
    SELECT facility_id, scheduled_at, misfired, missed_count, message_id FROM fire
    ON CONFLICT DO NOTHING
    RETURNING message_id
  ), stored AS (
    INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message)
    SELECT partition, facility_id, message_id, message_type, sent_at, trace_headers, message
    FROM fire JOIN recorded USING (message_id)
    ORDER BY position
  )
  SELECT message_id AS "messageId" FROM recorded`,
};

/** Records the fires, stores their messages and moves their triggers on. Gives the message ids of those occurrences that had not
 *  fired before; the messages of the others are not stored. */
export async function recordFires(
  manager: EntityManager,
  fires: readonly DecidedFire[],
): Promise<Set<string>> {
  if (fires.length === 0) return new Set();
  const column = <T>(pick: (fire: DecidedFire) => T): T[] => fires.map(pick);
  const rows = await queryPrepared<{ messageId: string }>(manager, RECORD, [
    column((fire) => fire.facilityId),
    column((fire) => fire.scheduledAt),
    column((fire) => fire.misfired),
    column((fire) => fire.missedCount),
    column(({ message }) => message.messageId),
    column((fire) => fire.nextFireAt),
    column(({ message }) => message.partition),
    column(({ message }) => message.messageType),
    column(({ message }) => message.sentAt),
    column(({ message }) => JSON.stringify(message.traceHeaders)),
    column(({ message }) => JSON.stringify(message.message)),
  ]);
  return new Set(rows.map(({ messageId }) => messageId));
}
