/**
 * Returns statements that fill the task service's database with `rows` rows of each kind.
 *
 * Facility 7 is as old as the service: it has a tenth of all instances, all completed long ago except the
 * newest. Other facilities have ten schedules each. Facility 1,000,001 is the newest. The main broker has
 * been down for so long that `rows` events wait.
 *
 * @param instances number of instances
 */
export function scaleRowsOfTasks(rows: number, instances = rows): readonly string[] {
  const n = String(rows);
  const m = String(instances);
  const facilities = String(rows / 10);
  return [
    `INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at, state)
     SELECT n, 'facility-' || n, 'g', 'j', '0 2 * * *', 'UTC', now() + (n - 50) * interval '100 milliseconds',
       CASE WHEN n % 1000 = 999 THEN 'PAUSED' ELSE 'WAITING' END
     FROM generate_series(1, ${n}) AS n`,
    `INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until, created_at,
       created_by_subject, created_by_persona, idempotency_key, request_digest)
     SELECT ${uuid('n')}, 1 + n % ${facilities}, 'Inspect', '0 2 * * *', 'UTC', now() - interval '1 day',
       now() - (${n} - n) * interval '1 second', 'personid:1', 4, n::text, 'd'
     FROM generate_series(1, ${n}) AS n`,
    `INSERT INTO task.instances (schedule_id, facility_id, name, due_at, status, completed_at)
     SELECT ${uuid(`1 + n % ${n}`)}, CASE WHEN n % 10 = 7 THEN 7 WHEN n % 10 = 3 AND n > ${m} * 0.95 THEN 1000001 ELSE 1 + n % ${facilities} END, 'Inspect',
       now() + (n - ${m} * 0.9) * interval '1 second', CASE WHEN n > ${m} * 0.9 THEN 'Pending' ELSE 'Completed' END,
       CASE WHEN n > ${m} * 0.9 THEN NULL ELSE now() END
     FROM generate_series(1, ${m}) AS n`,
    `INSERT INTO task.fires (facility_id, scheduled_at, fired_at, misfired, missed_count, message_id)
     SELECT 1 + n % ${facilities}, at, at, false, 0, gen_random_uuid()
     FROM generate_series(1, ${n}) AS n, LATERAL (SELECT now() - interval '31 days' + n * interval '1 second' AS at) AS fired`,
    // The partition of a past month, and those of the next months.
    `CREATE TABLE task.fires_2020_01 PARTITION OF task.fires FOR VALUES FROM ('2020-01-01T00:00Z') TO ('2020-02-01T00:00Z')`,
    `INSERT INTO task.fires (facility_id, scheduled_at, fired_at, misfired, missed_count, message_id)
     SELECT n, '2020-01-15T00:00Z', '2020-01-15T00:00Z', false, 0, gen_random_uuid() FROM generate_series(1, ${n}) AS n`,
    'SELECT task.keep_fires(30)',
    `INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message)
     SELECT n % 15, 1 + n % ${facilities}, gen_random_uuid(), 'ScheduleCreatedEvent', now(), '{}', json_build_object('name', repeat('x', 300))
     FROM generate_series(1, ${n}) AS n`,
    // The scheduling bus is up; its events are stored behind all the others.
    `INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message)
     SELECT 3, n, gen_random_uuid(), 'ITaskInstanceGenerationRequested', now(), '{}', '{}' FROM generate_series(1, 50) AS n`,
    `INSERT INTO task.inbox (queue, message_id, message_name, applied_at)
     SELECT 'q', gen_random_uuid()::text, 'm', now() - interval '31 days' + n * interval '1 second'
     FROM generate_series(1, ${n}) AS n`,
    'ANALYZE task.triggers, task.schedules, task.instances, task.fires, task.outbox, task.inbox',
  ];
}

/**
 * Inserts `each` schedules in each of 20 facilities, in alternating order. The commit is synchronous, because
 * vacuum marks no row as visible before its commit is on disk.
 */
export const fillTwentyFacilities = (each: number): string => `
  SET LOCAL synchronous_commit = on;
  INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until, created_by_subject, created_by_persona,
    request_digest)
  SELECT gen_random_uuid(), 1 + n % 20, 'Inspect', '0 2 * * *', 'UTC', now(), 'personid:1', 4, 'd' FROM generate_series(1, ${20 * each}) AS n`;

/**
 * Inserts `each` instances and one schedule in each of 200 facilities. The instances alternate between
 * facilities.
 */
export const fillBusyFacilities = (each: number): readonly string[] => [
  `INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until, created_by_subject, created_by_persona,
     request_digest)
   SELECT ${uuid('n')}, n, 'Inspect', '0 2 * * *', 'UTC', now(), 'personid:1', 4, 'd' FROM generate_series(1, 200) AS n`,
  `INSERT INTO task.instances (schedule_id, facility_id, name, due_at, status, completed_at)
   SELECT ${uuid('n')}, n, 'Inspect', now() + (day - ${each / 2}) * interval '1 hour' + n * interval '1 second',
     CASE WHEN day > ${each / 2} THEN 'Pending' ELSE 'Completed' END, CASE WHEN day > ${each / 2} THEN NULL ELSE now() END
   FROM generate_series(1, 200) AS n, generate_series(1, ${each}) AS day ORDER BY day, n`,
];

/**
 * Inserts `removed` removed schedules in facility 9, followed by ten of each other status, and 900 active
 * schedules in each of 20 other facilities.
 */
export const fillFacilityWithRemoved = (removed: number): string => `
  INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until, created_at, created_by_subject,
    created_by_persona, request_digest, status, ended_at, removed_at)
  SELECT gen_random_uuid(), facility_id, 'Inspect', '0 2 * * *', 'UTC', now(), now() - interval '1 year' + n * interval '1 second',
    'personid:1', 4, 'd', status, CASE WHEN has_ended THEN now() END, CASE WHEN status = 'Removed' THEN now() - interval '100 days' END
  FROM (
    SELECT n, 9 AS facility_id, 'Removed' AS status, false AS has_ended FROM generate_series(1, ${removed}) AS n
    UNION ALL SELECT ${removed} + n, 9, (ARRAY['Active', 'Active', 'Paused'])[1 + n % 3], n % 3 = 1 FROM generate_series(1, 30) AS n
    UNION ALL SELECT n, 100 + n % 20, 'Active', false FROM generate_series(1, 18000) AS n) AS made`;

/** Inserts released instances of a single schedule. */
export const fillReleasedOfOneSchedule = (): string => `
  INSERT INTO task.released_instances (schedule_id, facility_id, name, due_at, status, cancelled_at, cancellation_cause)
  SELECT ${uuid('1')}, 9, 'Inspect', now() + n * interval '1 second', 'Cancelled', now(), 'Pause' FROM generate_series(1, 20000) AS n`;

/** Inserts a template that `instances` instances share, half of them released, and 1,000 unused templates. */
export const fillOneTemplate = (instances: number): readonly string[] => [
  `INSERT INTO task.templates (template_id, template, used_at)
   SELECT ${uuid('n')}, json_build_object('n', n)::text, now() - interval '2 days' FROM generate_series(1, 1001) AS n`,
  `INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until, created_by_subject, created_by_persona,
     request_digest)
   VALUES (${uuid('1')}, 9, 'Inspect', '0 2 * * *', 'UTC', now(), 'personid:1', 4, 'd')`,
  ...['instances', 'released_instances'].map(
    (
      table,
    ) => `INSERT INTO task.${table} (schedule_id, facility_id, name, due_at, status, cancelled_at, cancellation_cause, template_id)
      SELECT ${uuid('1')}, 9, 'Inspect', now() + n * interval '1 second', 'Cancelled', now(), 'Pause', ${uuid('1001')}
      FROM generate_series(1, ${instances / 2}) AS n`,
  ),
];

/** Returns SQL for the identifier of the nth schedule. */
const uuid = (n: string): string => `('00000000-0000-4000-8000-' || lpad((${n})::text, 12, '0'))::uuid`;

/** Returns the identifier of the nth schedule. */
export function scheduleIdOf(n: number): string {
  return `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
}
