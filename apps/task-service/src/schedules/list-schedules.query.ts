import type { DataSource } from 'typeorm';
import type { FacilityScope } from '../access/facility-scope';
import type { Schedule, ScheduleStatus } from './schedule';
import { SCHEDULE_COLUMNS, scheduleOf } from './schedule-columns';
import type { ScheduleRow } from './schedule-columns';

// Parameters are planned with their values, so an absent filter costs nothing and a present one uses its index.
const SELECT = `
  SELECT ${SCHEDULE_COLUMNS} FROM task.schedules
  WHERE ($1::bigint[] IS NULL OR facility_id = ANY ($1)) AND ($2::text IS NULL OR status = $2)
    AND ($3::timestamptz IS NULL OR (created_at, schedule_id) > ($3, $4::uuid))
  ORDER BY created_at, schedule_id
  LIMIT $5`;

/** Schedules of the facilities in scope, oldest first, after the given position. */
export async function listSchedules(
  dataSource: DataSource,
  options: {
    scope: FacilityScope;
    status: ScheduleStatus | undefined;
    after: readonly unknown[];
    limit: number;
  },
): Promise<Schedule[]> {
  const [createdAt = null, scheduleId = null] = options.after;
  const facilities = options.scope === 'all' ? null : options.scope;
  const rows: ScheduleRow[] = await dataSource.query(SELECT, [
    facilities,
    options.status ?? null,
    createdAt,
    scheduleId,
    options.limit,
  ]);
  return rows.map(scheduleOf);
}
