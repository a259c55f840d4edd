import type { Query } from '@platform/database';
import type { NewOutboxMessage } from '../outbound/outbox-message.entity';
import type { DueFire } from './due-fire';

/** A decided fire and its message. */
export interface DecidedFire extends DueFire {
  readonly facilityId: number;
  readonly message: NewOutboxMessage;
}

/** Decisions for a batch of due triggers: those that fire, and those that cannot be evaluated. */
export interface Decisions {
  readonly fires: DecidedFire[];
  readonly failed: { facilityId: number; error: string }[];
}

/** Result of a batch of due triggers. `recorded`: the fires of occurrences that had not fired before. */
export interface Fired {
  readonly acquired: number;
  readonly recorded: DecidedFire[];
}

// Hand-written SQL: one round trip for all writes of a batch. A trigger advances even if its occurrence had
// fired before, but only a new fire has its message stored. The triggers are selected by $1, because a plan
// made for a small table would join the fires with all rows of a large one.
const RECORD_FIRES = {
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
    INSERT INTO task.fires (facility_id, scheduled_at, misfired, missed_count, message_id)
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

// Hand-written SQL: prepended to RECORD_FIRES in the rare case that a trigger cannot be evaluated.
const FAIL = `
  WITH failed AS (
    UPDATE task.triggers AS trigger SET state = 'ERROR', error = failed.error
    FROM unnest($12::bigint[], $13::text[]) AS failed (facility_id, error)
    WHERE trigger.facility_id = failed.facility_id
  )`;

/** Builds the statement with all writes of a batch. */
export function recordStatement({ fires, failed }: Decisions): Query {
  const column = <T>(pick: (fire: DecidedFire) => T): T[] => fires.map(pick);
  const values = [
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
  ];
  if (failed.length === 0) return { ...RECORD_FIRES, values };
  values.push(
    failed.map(({ facilityId }) => facilityId),
    failed.map(({ error }) => error),
  );
  return { text: RECORD_FIRES.text.replace('WITH', `${FAIL},`), values };
}
