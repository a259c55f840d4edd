import type { Actor } from '@platform/contracts';
import { queryPrepared } from '@platform/database';
import type { EntityManager } from 'typeorm';
import type { Schedule } from './schedule';
import { SCHEDULE_COLUMNS, scheduleOf } from './schedule-columns';
import type { ScheduleRow } from './schedule-columns';

/** A schedule to be stored. */
export interface NewSchedule {
  readonly scheduleId: string;
  readonly facilityId: number;
  readonly name: string;
  readonly description: string | null;
  readonly schedule: string;
  readonly timeZone: string;
  readonly startDate: string | null;
  /** The first instant at which it may be due. */
  readonly startsAt: Date | null;
  readonly template: string | null;
  readonly createdBy: Actor & { readonly subject: string };
  readonly idempotencyKey: string | null;
  readonly requestDigest: string;
}

// Nothing before its creation or its start is ever generated; the millisecond makes the start itself count.
const INSERT = {
  name: 'insert-schedule',
  text: `
  INSERT INTO task.schedules (schedule_id, facility_id, name, description, schedule, time_zone, start_date, template,
    generated_until, created_by_subject, created_by_person_id, created_by_name, created_by_persona, idempotency_key,
    request_digest)
  VALUES ($1, $2, $3, $4, $5, $6, $7, $8, greatest($9::timestamptz - interval '1 millisecond', now()),
    $10, $11, $12, $13, $14, $15)
  ON CONFLICT DO NOTHING
  RETURNING ${SCHEDULE_COLUMNS}`,
};

/** Stores the schedule; null when its id or the caller's idempotency key is there already. */
export async function insertSchedule(
  manager: EntityManager,
  schedule: NewSchedule,
): Promise<Schedule | null> {
  const { createdBy } = schedule;
  const rows = await queryPrepared<ScheduleRow>(manager, INSERT, [
    schedule.scheduleId,
    schedule.facilityId,
    schedule.name,
    schedule.description,
    schedule.schedule,
    schedule.timeZone,
    schedule.startDate,
    schedule.template,
    schedule.startsAt,
    createdBy.subject,
    createdBy.personId,
    createdBy.name,
    createdBy.persona,
    schedule.idempotencyKey,
    schedule.requestDigest,
  ]);
  return rows[0] ? scheduleOf(rows[0]) : null;
}
