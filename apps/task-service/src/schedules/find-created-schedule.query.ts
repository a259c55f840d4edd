import type { EntityManager } from 'typeorm';
import type { NewSchedule } from './insert-schedule.query';
import type { Schedule } from './schedule';
import { SCHEDULE_COLUMNS, scheduleOf } from './schedule-columns';
import type { ScheduleRow } from './schedule-columns';

const SELECT = `
  SELECT ${SCHEDULE_COLUMNS}, request_digest AS "requestDigest" FROM task.schedules
  WHERE schedule_id = $1 OR (created_by_subject = $2 AND idempotency_key = $3)`;

/** The schedule that an earlier attempt at the same request stored: recognised by its id after a commit whose confirmation
 *  was lost, or by the caller's idempotency key. */
export async function findCreatedSchedule(
  manager: EntityManager,
  { scheduleId, createdBy, idempotencyKey }: NewSchedule,
): Promise<{ schedule: Schedule; requestDigest: string } | null> {
  const rows: (ScheduleRow & { requestDigest: string })[] = await manager.query(SELECT, [
    scheduleId,
    createdBy.subject,
    idempotencyKey,
  ]);
  if (!rows[0]) return null;
  const { requestDigest, ...row } = rows[0];
  return { schedule: scheduleOf(row), requestDigest };
}
