import { RETENTION_START, type RetentionCase } from './retention-case.ts';

/** Ended instances are never purged unless the operator sets INSTANCE_RETENTION_DAYS. */
const ENDED_INSTANCES_DAYS = 100;
/** Variables of task-service that make its purges run within a run of a few minutes. */
export const RETENTION_VARIABLES = {
  RETENTION_INTERVAL_SECONDS: '10',
  INSTANCE_RETENTION_DAYS: String(ENDED_INSTANCES_DAYS),
} as const;

const A_MONTH = '30 days';

/** Rows of the task service, at facilities 1 and 2, which no caller uses. */
export const TASK_ROWS: readonly RetentionCase[] = [
  {
    retention: A_MONTH,
    plant: `INSERT INTO task.inbox (queue, message_id, message_name, content_hash, applied_at)
      VALUES ('retention', $1, 'retention', '', ${RETENTION_START})`,
    counts: {
      'task.inbox': `SELECT count(*)::int FROM ONLY task.inbox WHERE queue = 'retention' AND message_id = $1`,
    },
  },
  {
    retention: A_MONTH,
    plant: `INSERT INTO task.fires (facility_id, scheduled_at, fired_at, misfired, missed_count, message_id)
      VALUES (1, ${RETENTION_START}, ${RETENTION_START}, false, 0, md5($1)::uuid)`,
    counts: {
      'task.fires':
        'SELECT count(*)::int FROM task.fires WHERE facility_id = 1 AND message_id = md5($1)::uuid',
    },
  },
  {
    // Without this row the trigger would fire the same occurrence again when it resumes.
    retention: null,
    plant: `WITH paused AS (
        INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, state, next_fire_at)
        VALUES (2, 'facility-2', 'retention', 'retention', '0 0 1 1 *', 'UTC', 'PAUSED', ${RETENTION_START}) RETURNING next_fire_at)
      INSERT INTO task.fires (facility_id, scheduled_at, fired_at, misfired, missed_count, message_id)
      SELECT 2, next_fire_at, next_fire_at, false, 0, md5($1)::uuid FROM paused`,
    counts: {
      'task.fires (of a paused trigger)': `SELECT count(*)::int FROM task.fires
        WHERE facility_id = 2 AND message_id = md5($1)::uuid`,
    },
  },
  instances('Completed', { retention: `${ENDED_INSTANCES_DAYS} days`, completedAt: 'now()' }),
  instances('Cancelled', { retention: `${ENDED_INSTANCES_DAYS} days`, completedAt: 'NULL' }),
  instances('Pending', { retention: null, completedAt: 'NULL' }),
  {
    retention: A_MONTH,
    plant: `WITH schedule AS (${scheduleWith('Paused', 'NULL')})
      INSERT INTO task.released_instances (schedule_id, facility_id, name, due_at, status, cancelled_at, cancellation_cause)
      SELECT schedule_id, 1, $1, now(), 'Cancelled', ${RETENTION_START}, 'Update' FROM schedule`,
    counts: {
      'task.released_instances': `SELECT count(*)::int FROM ONLY task.released_instances WHERE name = $1 AND facility_id = 1`,
    },
  },
  {
    retention: '90 days',
    plant: scheduleWith('Removed', RETENTION_START),
    counts: {
      'task.schedules (removed)': `SELECT count(*)::int FROM ONLY task.schedules AS schedule
        WHERE name = $1 AND facility_id = 1 AND status = 'Removed'
          AND NOT EXISTS (SELECT FROM task.instances AS instance WHERE instance.schedule_id = schedule.schedule_id)`,
    },
  },
  {
    retention: null,
    plant: `WITH schedule AS (${scheduleWith('Removed', RETENTION_START)})
      INSERT INTO task.instances (schedule_id, facility_id, name, due_at, status, completed_at)
      SELECT schedule_id, 1, $1, now() - interval '1 day', 'Completed', now() FROM schedule`,
    counts: {
      'task.schedules (removed, with an instance)': `SELECT count(*)::int
        FROM ONLY task.schedules AS schedule JOIN ONLY task.instances AS instance USING (schedule_id)
        WHERE schedule.name = $1 AND schedule.facility_id = 1 AND schedule.status = 'Removed'`,
    },
  },
  {
    retention: '1 day',
    plant: `INSERT INTO task.templates (template_id, template, used_at) VALUES (md5($1)::uuid, '{}', ${RETENTION_START})`,
    counts: {
      'task.templates': 'SELECT count(*)::int FROM ONLY task.templates WHERE template_id = md5($1)::uuid',
    },
  },
  {
    // A parked event stays until an operator handles it.
    retention: null,
    plant: `INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message, created_at,
        attempts, last_error, parked_at)
      VALUES (0, 1, md5($1)::uuid, 'ScheduleCreatedEvent', ${RETENTION_START}, '{}', '{}', ${RETENTION_START}, 1, 'retention', ${RETENTION_START})`,
    counts: {
      'task.outbox (parked)': `SELECT count(*)::int FROM ONLY task.outbox
        WHERE message_id = md5($1)::uuid AND parked_at IS NOT NULL`,
    },
  },
];

/** Deletes the remaining planted rows. Audits would report them as never requested. */
export const DELETE_TASK_ROWS = [
  'DELETE FROM task.instances WHERE facility_id = 1',
  'DELETE FROM task.schedules WHERE facility_id = 1',
  'DELETE FROM task.fires WHERE facility_id IN (1, 2)',
  'DELETE FROM task.triggers WHERE facility_id = 2',
  'DELETE FROM task.outbox WHERE facility_id = 1',
] as const;

/** Instances, whose retention starts when they were due. */
function instances(
  status: string,
  { retention, completedAt }: { retention: string | null; completedAt: string },
): RetentionCase {
  return {
    retention,
    plant: `WITH schedule AS (${scheduleWith('Paused', 'NULL')})
      INSERT INTO task.instances (schedule_id, facility_id, name, due_at, status, completed_at)
      SELECT schedule_id, 1, $1, ${RETENTION_START}, '${status}', ${completedAt} FROM schedule`,
    counts: {
      [`task.instances (${status})`]: `SELECT count(*)::int FROM ONLY task.instances AS instance JOIN ONLY task.schedules AS schedule USING (schedule_id)
        WHERE instance.name = $1 AND instance.facility_id = 1 AND instance.status = '${status}' AND schedule.status = 'Paused'`,
    },
  };
}

/** SQL that inserts a schedule with the name $1. @param removedAt SQL */
function scheduleWith(status: string, removedAt: string): string {
  return `INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until, created_by_subject,
      created_by_persona, request_digest, status, removed_at)
    VALUES (gen_random_uuid(), 1, $1, '0 9 * * 1', 'UTC', now(), 'retention', 1, '', '${status}', ${removedAt})
    RETURNING schedule_id`;
}
