import type { EntityManager } from 'typeorm';
import type { DueFire } from './due-fire';

/** A decided fire with the message that will carry it. */
export interface TriggerFire extends DueFire {
  readonly facilityId: number;
  readonly messageId: string;
}

// One round trip. Moving the trigger does not depend on the insert: an occurrence that fired before moves on all the same.
const RECORD = `
  WITH fire AS (
    SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::boolean[], $4::integer[], $5::uuid[], $6::timestamptz[])
      AS fire (facility_id, scheduled_at, misfired, missed_count, message_id, next_fire_at)
  ), moved AS (
    UPDATE task.triggers AS trigger
    SET next_fire_at = fire.next_fire_at, previous_fire_at = fire.scheduled_at
    FROM fire WHERE trigger.facility_id = fire.facility_id
  ), recorded AS (
    INSERT INTO task.trigger_fires (facility_id, scheduled_at, misfired, missed_count, message_id)
    SELECT facility_id, scheduled_at, misfired, missed_count, message_id FROM fire
    ON CONFLICT DO NOTHING
    RETURNING message_id
  )
  SELECT message_id AS "messageId" FROM recorded`;

/** Records the fires and moves their triggers on. Gives the message ids of those occurrences that had not fired before. */
export async function recordFires(
  manager: EntityManager,
  fires: readonly TriggerFire[],
): Promise<Set<string>> {
  const column = <T>(pick: (fire: TriggerFire) => T): T[] => fires.map(pick);
  const rows = await manager.query<{ messageId: string }[]>(RECORD, [
    column((fire) => fire.facilityId),
    column((fire) => fire.scheduledAt),
    column((fire) => fire.misfired),
    column((fire) => fire.missedCount),
    column((fire) => fire.messageId),
    column((fire) => fire.nextFireAt),
  ]);
  return new Set(rows.map(({ messageId }) => messageId));
}
