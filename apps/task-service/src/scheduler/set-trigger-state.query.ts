import type { EntityManager } from 'typeorm';
import type { Trigger } from './trigger';
import { TRIGGER_COLUMNS } from './trigger-columns';

// The condition stands in the values, not in the WHERE, so that a trigger already in that state is answered as it is. One in
// ERROR stays there: only a new schedule makes it evaluable.
const UPDATE = `
  WITH changed AS (
    UPDATE task.triggers SET
      state = CASE state WHEN 'ERROR' THEN state ELSE $2 END,
      paused_at = CASE WHEN $2 = 'PAUSED' THEN coalesce(paused_at, now()) END,
      updated_at = now()
    WHERE facility_id = $1
    RETURNING *)
  SELECT ${TRIGGER_COLUMNS} FROM changed`;

/** Pauses or resumes the facility's trigger; null when it has none. Waits for a fire under way. */
export async function setTriggerState(
  manager: EntityManager,
  facilityId: number,
  state: 'PAUSED' | 'WAITING',
): Promise<Trigger | null> {
  const rows = await manager.query<Trigger[]>(UPDATE, [facilityId, state]);
  return rows[0] ?? null;
}
