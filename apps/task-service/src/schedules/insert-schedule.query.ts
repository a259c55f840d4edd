import type { Actor } from '@platform/contracts';
import { queryPrepared } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { OutboxMessage } from '../outbound/insert-outbox-messages.query';
import { splitAtCreation } from './creation-event';
import type { Schedule } from './schedule';
import { SCHEDULE_COLUMNS, scheduleOf } from './schedule-columns';
import type { ScheduleRow } from './schedule-columns';

/** A schedule to be stored. */
export interface NewSchedule extends Omit<Schedule, 'status' | 'createdAt' | 'createdBy'> {
  /** The first instant at which it may be due. */
  readonly startsAt: Date | null;
  readonly template: string | null;
  readonly createdBy: Actor & { readonly subject: string };
  readonly idempotencyKey: string | null;
  readonly requestDigest: string;
}

// Nothing before its creation or its start is ever generated; the millisecond makes the start itself count. The event tells
// the instant that the schedule has: the database's, which is known here only.
const INSERT = {
  name: 'insert-schedule',
  text: `
  WITH created AS (
    INSERT INTO task.schedules (schedule_id, facility_id, name, description, schedule, time_zone, start_date, template,
      generated_until, created_by_subject, created_by_person_id, created_by_name, created_by_persona, idempotency_key,
      request_digest)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, greatest($9::timestamptz - interval '1 millisecond', now()),
      $10, $11, $12, $13, $14, $15)
    ON CONFLICT DO NOTHING
    RETURNING *
  ), stored AS (
    INSERT INTO task.outbox (lane, facility_id, message_id, bus, exchange, headers, body)
    SELECT $16::smallint, facility_id, $17::uuid, $18::text, $19::text, $20::text,
      $21::text || to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || $22::text
    FROM created
  )
  SELECT ${SCHEDULE_COLUMNS} FROM created`,
};

/** Stores the schedule and, with its instant of creation, its event: one statement that is a transaction by itself. Null, and
 *  nothing is stored, when its id or the caller's idempotency key is there already. */
export async function insertSchedule(
  dataSource: DataSource,
  schedule: NewSchedule,
  event: OutboxMessage,
): Promise<Schedule | null> {
  const values = [...scheduleValues(schedule), ...eventValues(event)];
  const rows = await queryPrepared<ScheduleRow>(dataSource, INSERT, values);
  return rows[0] ? scheduleOf(rows[0]) : null;
}

function scheduleValues({ createdBy, ...schedule }: NewSchedule): unknown[] {
  return [
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
  ];
}

function eventValues({ lane, envelope }: OutboxMessage): unknown[] {
  const { messageId, bus, exchange, headers, body } = envelope;
  return [lane, messageId, bus, exchange, JSON.stringify(headers), ...splitAtCreation(body)];
}
