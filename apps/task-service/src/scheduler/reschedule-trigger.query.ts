import { traceHeaders } from '@platform/service-defaults';
import type { EntityManager } from 'typeorm';
import type { Trigger } from './trigger';

// A pause is its operator's decision and outlives a new schedule; an error does not.
const UPDATE = `
  UPDATE task.triggers SET schedule = $2, time_zone = $3, next_fire_at = $4, updated_at = now(), error = NULL,
    origin_trace = $5,
    state = CASE state WHEN 'ERROR' THEN 'WAITING' ELSE state END
  WHERE facility_id = $1`;

/** Gives a locked trigger another schedule. */
export async function rescheduleTrigger(
  manager: EntityManager,
  {
    facilityId,
    schedule,
    timeZone,
    nextFireAt,
  }: Pick<Trigger, 'facilityId' | 'schedule' | 'timeZone' | 'nextFireAt'>,
): Promise<void> {
  await manager.query(UPDATE, [
    facilityId,
    schedule,
    timeZone,
    nextFireAt,
    traceHeaders().traceparent ?? null,
  ]);
}
