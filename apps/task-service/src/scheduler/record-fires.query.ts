import { queryPrepared } from '@platform/database';
import type { EntityManager } from 'typeorm';
import type { OutboxMessage } from '../outbound/insert-outbox-messages.query';
import type { DueFire } from './due-fire';

/** A decided fire with the message that carries it. */
export interface DecidedFire extends DueFire {
  readonly facilityId: number;
  readonly message: OutboxMessage;
}

// One round trip for everything a batch writes. Moving the trigger does not depend on the insert: an occurrence that fired
// before moves on all the same, but only a new one has its message stored. The triggers are found by $1: a plan that was made
// for a small table joins the fires with all of a large one.
const RECORD = {
  name: 'record-fires',
  text: `
  WITH fire AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::boolean[], $4::integer[], $5::uuid[], $6::timestamptz[],
        $7::smallint[], $8::text[], $9::text[], $10::text[], $11::text[]) WITH ORDINALITY
      AS fire (facility_id, scheduled_at, misfired, missed_count, message_id, next_fire_at,
        lane, bus, exchange, headers, body, position)
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
    INSERT INTO task.outbox (lane, facility_id, message_id, bus, exchange, headers, body)
    SELECT lane, facility_id, message_id, bus, exchange, headers, body
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
    column(({ message }) => message.envelope.messageId),
    column((fire) => fire.nextFireAt),
    column(({ message }) => message.lane),
    column(({ message }) => message.envelope.bus),
    column(({ message }) => message.envelope.exchange),
    column(({ message }) => JSON.stringify(message.envelope.headers)),
    column(({ message }) => message.envelope.body),
  ]);
  return new Set(rows.map(({ messageId }) => messageId));
}
