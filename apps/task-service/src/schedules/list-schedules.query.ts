import type { DataSource } from 'typeorm';
import type { FacilityScope } from '../access/facility-scope';
import { SCHEDULE_STATUSES } from './schedule';
import type { Schedule, ScheduleStatus } from './schedule';
import { SCHEDULE_COLUMNS, scheduleOf } from './schedule-columns';
import type { ScheduleRow } from './schedule-columns';

// As the list of instances: a page for each status or facility, each one range of an index, and of these the first. A facility has few
// schedules, so that a filter among them is cheap.
const page = (source: string, condition: string): string => `
  WITH candidate AS (
    SELECT ranged.id FROM ${source} CROSS JOIN LATERAL (
      SELECT created_at, schedule_id AS id FROM task.schedules
      WHERE ${condition} AND ($3::timestamptz IS NULL OR (created_at, schedule_id) > ($3, $4::uuid))
      ORDER BY created_at, schedule_id
      LIMIT $5) AS ranged
    ORDER BY created_at, id
    LIMIT $5)
  SELECT ${SCHEDULE_COLUMNS} FROM candidate CROSS JOIN LATERAL (
    SELECT * FROM task.schedules WHERE schedule_id = candidate.id LIMIT 1) AS listed
  ORDER BY created_at, schedule_id`;

const LIST_ALL = page(
  'unnest($2::text[]) AS wanted (status_key)',
  '$1::bigint[] IS NULL AND status = wanted.status_key',
);
const LIST_FACILITIES = page(
  'unnest($1::bigint[]) AS mine (facility_key)',
  'facility_id = mine.facility_key AND status = ANY ($2)',
);

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
  const facilities = options.scope === 'all' ? null : [...new Set(options.scope)];
  const rows: ScheduleRow[] = await dataSource.query(facilities === null ? LIST_ALL : LIST_FACILITIES, [
    facilities,
    options.status === undefined ? SCHEDULE_STATUSES : [options.status],
    createdAt,
    scheduleId,
    options.limit,
  ]);
  return rows.map(scheduleOf);
}
