import type { TestPlatform } from '#platform/test-platform.ts';

/** Facilities with consecutive ids, starting at `first`. */
export interface Facilities {
  readonly first: number;
  readonly count: number;
}

/**
 * Inserts daily schedules that are generated up to their 29th day, so a fire generates one instance of each.
 */
const FILL_SCHEDULES = `
  INSERT INTO task.schedules (schedule_id, facility_id, name, schedule, time_zone, generated_until, created_by_subject,
    created_by_persona, request_digest)
  SELECT gen_random_uuid(), facility, 'Check the fire extinguishers ' || n, n % 60 || ' 2 * * *', 'Europe/Berlin',
    now() + interval '29 days', 'personid:1001', 2, ''
  FROM generate_series($1::bigint, $2::bigint) AS facility CROSS JOIN generate_series(1, $3::integer) AS n`;
/** Inserts the instances of 30 days for each schedule. */
const FILL_INSTANCES = `
  INSERT INTO task.instances (schedule_id, facility_id, name, due_at)
  SELECT schedule_id, facility_id, name, date_trunc('minute', now()) + day * interval '1 day'
  FROM task.schedules CROSS JOIN generate_series(1, 30) AS day
  WHERE facility_id BETWEEN $1 AND $2`;
const FILL_TRIGGERS = `
  INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at)
  SELECT facility, 'facility-' || facility, 'TaskInstanceGeneration', 'GenerateTaskInstancesSchedule', '0 2 * * *', 'Europe/Berlin',
    now() + (facility - $1 + 1)::float8 / ($2 - $1 + 1) * $3::float8 * interval '1 second'
  FROM generate_series($1::bigint, $2::bigint) AS facility`;
const INSTANCE_IDS = `
  SELECT task_instance_id AS id FROM task.instances WHERE facility_id BETWEEN $1 AND $2 ORDER BY due_at, task_instance_id`;

export async function addSchedules(
  platform: TestPlatform,
  facilities: Facilities,
  ofEach: number,
): Promise<void> {
  await platform.query('task', [FILL_SCHEDULES, [...range(facilities), ofEach]]);
}

/** Adds pending instances of 30 days for each schedule. Returns their ids. */
export async function addInstances(platform: TestPlatform, facilities: Facilities): Promise<string[]> {
  const rows = await platform.query<{ id: string }>(
    'task',
    [FILL_INSTANCES, range(facilities)],
    [INSTANCE_IDS, range(facilities)],
  );
  return rows.map(({ id }) => id);
}

/** Adds triggers that become due one after the other within `seconds`. */
export async function addTriggers(
  platform: TestPlatform,
  facilities: Facilities,
  seconds: number,
): Promise<void> {
  await platform.query('task', [FILL_TRIGGERS, [...range(facilities), seconds]]);
}

/** Counts the instances of these facilities, and their due triggers. */
export async function countGenerated(
  platform: TestPlatform,
  facilities: Facilities,
): Promise<{ instances: number; due: number }> {
  const [row] = await platform.query<{ instances: number; due: number }>('task', [
    `SELECT (SELECT count(*)::integer FROM task.instances WHERE facility_id BETWEEN $1 AND $2) AS instances,
      (SELECT count(*)::integer FROM task.triggers WHERE facility_id BETWEEN $1 AND $2 AND next_fire_at <= now()) AS due`,
    range(facilities),
  ]);
  return row!;
}

function range({ first, count }: Facilities): [number, number] {
  return [first, first + count - 1];
}
