import type { EntityManager } from 'typeorm';

/** An Active schedule and the instants up to which its instances are wanted. */
export interface GeneratingSchedule {
  readonly scheduleId: string;
  readonly schedule: string;
  readonly timeZone: string;
  /** Everything due up to here has been generated. */
  readonly generatedUntil: Date;
  /** Now plus the horizon, by the database's clock. */
  readonly horizonAt: Date;
}

// In one order, so that two generations never wait for each other. What is more than a horizon in the past, e.g. after a
// long pause, is not made up for.
const SELECT = `
  SELECT schedule_id AS "scheduleId", schedule, time_zone AS "timeZone",
    greatest(generated_until, now() - make_interval(days => $3)) AS "generatedUntil",
    now() + make_interval(days => $3) AS "horizonAt"
  FROM task.schedules
  WHERE status = 'Active' AND ($1::uuid IS NULL OR schedule_id = $1) AND facility_id = $2
    AND generated_until < now() + make_interval(days => $3)
  ORDER BY schedule_id
  FOR NO KEY UPDATE`;

/** Locks the Active schedules of a facility, or one of them, that are not generated up to the horizon yet. */
export async function lockActiveSchedules(
  manager: EntityManager,
  { facilityId, scheduleId }: { facilityId: number; scheduleId?: string | undefined },
  horizonDays: number,
): Promise<GeneratingSchedule[]> {
  return manager.query<GeneratingSchedule[]>(SELECT, [scheduleId ?? null, facilityId, horizonDays]);
}
