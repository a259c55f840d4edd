import { queryPrepared } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { NewOutboxMessage } from '../outbound/outbox-message.entity';
import type { Schedule } from './schedule.entity';
import type { NewSchedule } from './schedules.repository';

const SCHEDULE_COLUMNS = `
  schedule_id AS "scheduleId", facility_id::float8 AS "facilityId", name, description, schedule, time_zone AS "timeZone",
  start_date AS "startDate", status, created_at AS "createdAt", created_by_person_id::float8 AS "createdByPersonId",
  created_by_name AS "createdByName", created_by_persona AS "createdByPersona"`;

/** A schedule with the event of its creation. */
export interface ScheduleCreation {
  readonly schedule: NewSchedule;
  readonly event: NewOutboxMessage;
}

// By hand: one statement for two tables. Nothing before its creation or its start is ever generated; the millisecond makes the start
// itself count. The event tells the instant that the schedule has, which the database decides. In the order of the idempotency keys, so
// that two replicas that store the same ones do not wait for each other crosswise.
const INSERT = {
  name: 'insert-schedules',
  text: `
  WITH request AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::json) AS r (schedule_id uuid, facility_id bigint, name text, description text, schedule text,
      time_zone text, start_date text, template text, starts_at timestamptz, subject text, person_id bigint, person_name text,
      persona smallint, idempotency_key text, request_digest text, partition smallint, message_id uuid,
      message_type text, conversation_id text, sent_at timestamptz, trace_headers json, message jsonb)
  ), created AS (
    INSERT INTO task.schedules (schedule_id, facility_id, name, description, schedule, time_zone, start_date, template,
      generated_until, created_by_subject, created_by_person_id, created_by_name, created_by_persona, idempotency_key,
      request_digest)
    SELECT schedule_id, facility_id, name, description, schedule, time_zone, start_date, template,
      greatest(starts_at - interval '1 millisecond', now()), subject, person_id, person_name, persona, idempotency_key,
      request_digest FROM request ORDER BY subject, idempotency_key
    ON CONFLICT DO NOTHING
    RETURNING *
  ), stored AS (
    INSERT INTO task.outbox (partition, facility_id, message_id, message_type, conversation_id, sent_at, trace_headers, message)
    SELECT r.partition, r.facility_id, r.message_id, r.message_type, r.conversation_id, r.sent_at, r.trace_headers,
      r.message || jsonb_build_object('createdAtUtc',
        to_char(c.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
    FROM created c JOIN request r USING (schedule_id)
  )
  SELECT ${SCHEDULE_COLUMNS} FROM created`,
};

/** Stores schedules and, with their instant of creation, their events: one statement that is a transaction by itself. Null, and
 *  nothing is stored, for each whose id or caller's idempotency key is there already. */
export async function insertSchedules(
  dataSource: DataSource,
  creations: readonly ScheduleCreation[],
): Promise<(Schedule | null)[]> {
  const rows = await queryPrepared<Schedule>(dataSource, INSERT, [JSON.stringify(creations.map(requestOf))]);
  const created = new Map(rows.map((row) => [row.scheduleId, row]));
  return creations.map(({ schedule }) => created.get(schedule.scheduleId) ?? null);
}

function requestOf({ schedule, event }: ScheduleCreation) {
  return {
    schedule_id: schedule.scheduleId,
    facility_id: schedule.facilityId,
    name: schedule.name,
    description: schedule.description,
    schedule: schedule.schedule,
    time_zone: schedule.timeZone,
    start_date: schedule.startDate,
    template: schedule.template,
    starts_at: schedule.startsAt,
    subject: schedule.createdBySubject,
    person_id: schedule.createdByPersonId,
    person_name: schedule.createdByName,
    persona: schedule.createdByPersona,
    idempotency_key: schedule.idempotencyKey,
    request_digest: schedule.requestDigest,
    partition: event.partition,
    message_id: event.messageId,
    message_type: event.messageType,
    conversation_id: event.conversationId,
    sent_at: event.sentAt,
    trace_headers: event.traceHeaders,
    message: event.message,
  };
}
