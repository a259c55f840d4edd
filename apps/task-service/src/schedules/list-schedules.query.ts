import type { DataSource } from 'typeorm';
import type { FacilityScope } from '../access/facility-scope';
import { SCHEDULE_STATUSES } from './schedule';
import type { Schedule, ScheduleStatus } from './schedule';
import { SCHEDULE_COLUMNS, scheduleOf } from './schedule-columns';
import type { ScheduleRow } from './schedule-columns';

// As the list of instances: a page for each status or facility, each one range of an index in its order, and of these the first. A
// facility has few schedules, so that a filter among them is cheap.
const page = (source: string, column: string, wanted: string, filter: string): string => `
  WITH candidate AS (
    SELECT ranged.id FROM ${source} CROSS JOIN LATERAL (
      SELECT created_at, schedule_id AS id FROM task.schedules
      WHERE (${column}, created_at, schedule_id) > (${wanted}, $2::timestamptz, $3::uuid) AND ${column} <= ${wanted} AND ${filter}
      ORDER BY ${column}, created_at, schedule_id
      LIMIT $4) AS ranged
    ORDER BY created_at, id
    LIMIT $4)
  SELECT ${SCHEDULE_COLUMNS} FROM candidate CROSS JOIN LATERAL (
    SELECT * FROM task.schedules WHERE schedule_id = candidate.id LIMIT 1) AS listed
  ORDER BY created_at, schedule_id`;

const LIST_ALL = page('unnest($1::text[]) AS wanted (status_key)', 'status', 'wanted.status_key', 'true');
const LIST_FACILITIES = page(
  'unnest($5::bigint[]) AS mine (facility_key)',
  'facility_id',
  'mine.facility_key',
  'status = ANY ($1)',
);

/** Before every schedule. */
const START = ['-infinity', '00000000-0000-0000-0000-000000000000'];

/** Schedules of the facilities in scope, oldest first, after the given position. */
export async function listSchedules(
  dataSource: DataSource,
  {
    scope,
    status,
    after,
    limit,
  }: {
    scope: FacilityScope;
    status: ScheduleStatus | undefined;
    after: readonly unknown[];
    limit: number;
  },
): Promise<Schedule[]> {
  const [createdAt, scheduleId] = after.length === 0 ? START : after;
  const range = [status === undefined ? SCHEDULE_STATUSES : [status], createdAt, scheduleId, limit];
  const rows: ScheduleRow[] =
    scope === 'all'
      ? await dataSource.query(LIST_ALL, range)
      : await dataSource.query(LIST_FACILITIES, [...range, [...new Set(scope)]]);
  return rows.map(scheduleOf);
}
