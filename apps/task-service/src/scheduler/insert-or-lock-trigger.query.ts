import { traceHeaders } from '@platform/service-defaults';
import type { EntityManager } from 'typeorm';
import { JOB_NAME, TRIGGER_GROUP, triggerName } from './trigger';
import type { Trigger } from './trigger';
import { TRIGGER_COLUMNS } from './trigger-columns';

// The update changes nothing that matters; it makes one statement either create the row or lock the one that is there.
const UPSERT = `
  INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at,
    origin_trace)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
  ON CONFLICT (facility_id) DO UPDATE SET updated_at = now()
  RETURNING ${TRIGGER_COLUMNS}, (xmax = 0) AS created`;

/** Creates the facility's trigger, or locks the existing one and gives it as it is. */
export async function insertOrLockTrigger(
  manager: EntityManager,
  {
    facilityId,
    schedule,
    timeZone,
    nextFireAt,
  }: Pick<Trigger, 'facilityId' | 'schedule' | 'timeZone' | 'nextFireAt'>,
): Promise<{ trigger: Trigger; created: boolean }> {
  const rows = await manager.query<(Trigger & { created: boolean })[]>(UPSERT, [
    facilityId,
    triggerName(facilityId),
    TRIGGER_GROUP,
    JOB_NAME,
    schedule,
    timeZone,
    nextFireAt,
    traceHeaders().traceparent ?? null,
  ]);
  const row = rows[0];
  if (!row) throw new Error('the trigger was neither created nor found');
  const { created, ...trigger } = row;
  return { trigger, created };
}
