import type { TestPlatform } from '#platform/test-platform.ts';
import type { Journal } from './journal.ts';

export const FIRST_PLANTED_FACILITY = 100_000;
const OCCURRENCES_DUE = 8;

/** The columns of a trigger as the service's own scheduling would have filled them. */
const PLANT = `
  INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at)
  SELECT facility_id, 'facility-' || facility_id, 'TaskInstanceGeneration', 'GenerateTaskInstancesSchedule', '* * * * *', 'UTC',
    date_trunc('minute', now()) - $3 * interval '1 minute'
  FROM generate_series($1::bigint, $1::bigint + $2 - 1) AS facility_id
  RETURNING facility_id::int AS "facilityId", next_fire_at AS "nextFireAt"`;

/**
 * Puts triggers with several occurrences already due into the trigger store, because cron's minutes are far apart for a run of minutes.
 * From then on they fire like any other, every minute.
 */
export async function plantTriggers(platform: TestPlatform, journal: Journal, count: number): Promise<void> {
  const first = FIRST_PLANTED_FACILITY + journal.planted.length;
  const rows = await platform.query<{ facilityId: number; nextFireAt: Date }>('task', [
    PLANT,
    [first, count, OCCURRENCES_DUE - 1],
  ]);
  for (const { facilityId, nextFireAt } of rows)
    journal.planted.push({ facilityId, firstDueAtMs: nextFireAt.getTime() });
}

/** Ends the fires of every trigger; the last ones are still on their way. */
export async function pauseTriggers(platform: TestPlatform): Promise<void> {
  await platform.query('task', `UPDATE task.triggers SET state = 'PAUSED', paused_at = now()`);
}
