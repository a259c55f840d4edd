import { queryPrepared } from '@platform/database';
import type { EntityManager } from 'typeorm';

/** Triggers per batch. Source: task messaging spec, Scheduler rules 3. */
export const BATCH_SIZE = 10;

/** A trigger that this transaction alone may fire. */
export interface DueTrigger {
  readonly facilityId: number;
  readonly schedule: string;
  readonly timeZone: string;
  /** The trace in which the trigger was created or last changed, as a `traceparent`; null when that is unknown. */
  readonly originTrace: string | null;
  readonly dueAt: Date;
  /** The database's time of the transaction: the only clock that decides. */
  readonly now: Date;
}

// now() is an index condition; clock_timestamp() would scan every waiting trigger.
// The limit is part of the text: a plan for any limit would be one for a tenth of the table.
const ACQUIRE = {
  name: 'acquire-due-triggers',
  text: `
  SELECT facility_id::float8 AS "facilityId", schedule, time_zone AS "timeZone", origin_trace AS "originTrace",
    next_fire_at AS "dueAt", now() AS now
  FROM task.triggers
  WHERE state = 'WAITING' AND next_fire_at <= now()
  ORDER BY next_fire_at, facility_id
  LIMIT ${String(BATCH_SIZE)}
  FOR UPDATE SKIP LOCKED`,
};

/** Locks a batch of due triggers, longest due first, passing over those that another replica is firing. */
export function acquireDueTriggers(manager: EntityManager): Promise<DueTrigger[]> {
  return queryPrepared<DueTrigger>(manager, ACQUIRE, []);
}
