import { queryPrepared } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { NewSchedule } from './insert-schedules.query';
import type { Schedule } from './schedule';
import { SCHEDULE_COLUMNS, scheduleOf } from './schedule-columns';
import type { ScheduleRow } from './schedule-columns';

const SELECT = {
  name: 'find-created-schedule',
  text: `
  SELECT ${SCHEDULE_COLUMNS}, request_digest AS "requestDigest" FROM task.schedules
  WHERE schedule_id = $1 OR (created_by_subject = $2 AND idempotency_key = $3)`,
};

/** The schedule that an earlier attempt at the same request stored: recognised by its id after a commit whose confirmation
 *  was lost, or by the caller's idempotency key. */
export async function findCreatedSchedule(
  dataSource: DataSource,
  { scheduleId, createdBy, idempotencyKey }: NewSchedule,
): Promise<{ schedule: Schedule; requestDigest: string } | null> {
  const values = [scheduleId, createdBy.subject, idempotencyKey];
  const [found] = await queryPrepared<ScheduleRow & { requestDigest: string }>(dataSource, SELECT, values);
  if (!found) return null;
  const { requestDigest, ...row } = found;
  return { schedule: scheduleOf(row), requestDigest };
}
