import { traceHeaders } from '@platform/service-defaults';
import type { EntityManager } from 'typeorm';
import { JOB_NAME, TRIGGER_GROUP, triggerName } from './trigger';
import type { Trigger } from './trigger';
import { TRIGGER_COLUMNS } from './trigger-columns';

const INSERT = `
  INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at,
    origin_trace)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
  ON CONFLICT (facility_id) DO NOTHING
  RETURNING ${TRIGGER_COLUMNS}`;
const LOCK = `SELECT ${TRIGGER_COLUMNS} FROM task.triggers WHERE facility_id = $1 FOR UPDATE`;

/** A trigger that is there and then gone again was deleted in between; nobody does that over and over. */
const MAX_LOOKS = 5;

/** Creates the facility's trigger, or locks the existing one and gives it as it is. Needs READ COMMITTED: it looks again at what came in between. */
export async function insertOrLockTrigger(
  manager: EntityManager,
  {
    facilityId,
    schedule,
    timeZone,
    nextFireAt,
  }: Pick<Trigger, 'facilityId' | 'schedule' | 'timeZone' | 'nextFireAt'>,
): Promise<{ trigger: Trigger; created: boolean }> {
  const row = [
    facilityId,
    triggerName(facilityId),
    TRIGGER_GROUP,
    JOB_NAME,
    schedule,
    timeZone,
    nextFireAt,
    traceHeaders().traceparent ?? null,
  ];
  for (let look = 1; look <= MAX_LOOKS; look += 1) {
    const [inserted] = await manager.query<Trigger[]>(INSERT, row);
    if (inserted !== undefined) return { trigger: inserted, created: true };
    const [locked] = await manager.query<Trigger[]>(LOCK, [facilityId]);
    if (locked !== undefined) return { trigger: locked, created: false };
  }
  throw new Error('the trigger was neither created nor found');
}
