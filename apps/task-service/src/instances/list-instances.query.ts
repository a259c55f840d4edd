import type { DataSource } from 'typeorm';
import type { FacilityScope } from '../access/facility-scope';
import type { TaskInstance } from './instance';
import { INSTANCE_COLUMNS, instanceOf } from './instance-columns';
import type { InstanceRow } from './instance-columns';
import { INSTANCE_STATUSES } from './instance-status';
import type { InstanceStatus } from './instance-status';

// A page for each facility and status, each one range of an index in its order, and of these the first: a list costs what it shows, not
// what it passes over, whether one facility has most of the instances or one status none. As a plain filter a rare status reads the
// whole table. Rows are compared whole, not key by key with `=`: of a key that comes from a list PostgreSQL expects as many instances as
// the average one has, and while much of the table is not yet vacuumed it then reads all there are and sorts them.
const page = (sources: string, columns: string, wanted: string): string => `
  WITH candidate AS (
    SELECT ranged.id FROM ${sources} CROSS JOIN LATERAL (
      SELECT due_at, task_instance_id AS id FROM task.instances
      WHERE (${columns}, due_at, task_instance_id) > (${wanted}, $2::timestamptz, $3::uuid)
        AND (${columns}, due_at) < (${wanted}, $4::timestamptz)
      ORDER BY ${columns}, due_at, task_instance_id
      LIMIT $5) AS ranged
    ORDER BY due_at, id
    LIMIT $5)
  SELECT ${INSTANCE_COLUMNS} FROM candidate CROSS JOIN LATERAL (
    SELECT * FROM task.instances WHERE task_instance_id = candidate.id LIMIT 1) AS listed
  ORDER BY due_at, task_instance_id`;

const STATUSES = 'unnest($1::text[]) AS wanted (status_key)';

const LIST_ALL = page(STATUSES, 'status', 'wanted.status_key');
const LIST_FACILITIES = page(
  `unnest($6::bigint[]) AS mine (facility_key) CROSS JOIN ${STATUSES}`,
  'facility_id, status',
  'mine.facility_key, wanted.status_key',
);

// A schedule has few instances; they come by the index that keeps them unique.
const LIST_SCHEDULE = `
  SELECT ${INSTANCE_COLUMNS} FROM task.instances
  WHERE schedule_id = $7 AND ($6::bigint[] IS NULL OR facility_id = ANY ($6)) AND status = ANY ($1)
    AND (due_at, task_instance_id) > ($2::timestamptz, $3::uuid) AND due_at < $4::timestamptz
  ORDER BY due_at, task_instance_id
  LIMIT $5`;

/** Before every identifier that is ever given. */
const NIL_UUID = '00000000-0000-0000-0000-000000000000';

/** Filters of the instance list; `dueFrom` is inclusive, `dueTo` exclusive, both ISO 8601 with an offset. */
export interface InstanceFilters {
  readonly scope: FacilityScope;
  readonly status?: InstanceStatus | undefined;
  readonly scheduleId?: string | undefined;
  readonly dueFrom?: string | undefined;
  readonly dueTo?: string | undefined;
}

/** Instances that match, by due time, after the given position, which a list with the same filters ended at. */
export async function listInstances(
  dataSource: DataSource,
  { scope, status, scheduleId, dueFrom, dueTo }: InstanceFilters,
  { after, limit }: { after: readonly unknown[]; limit: number },
): Promise<TaskInstance[]> {
  // As dates: PostgreSQL refuses instants that ISO 8601 allows, with an offset of 23 h or in the year 0.
  const first = [dueFrom === undefined ? '-infinity' : new Date(dueFrom), NIL_UUID];
  const [dueAt, taskInstanceId] = after.length === 0 ? first : after;
  const range = [
    status === undefined ? INSTANCE_STATUSES : [status],
    dueAt,
    taskInstanceId,
    dueTo === undefined ? 'infinity' : new Date(dueTo),
    limit,
  ];
  const facilities = scope === 'all' ? null : [...new Set(scope)];
  return (await select(dataSource, { range, facilities, scheduleId })).map(instanceOf);
}

function select(
  dataSource: DataSource,
  {
    range,
    facilities,
    scheduleId,
  }: { range: unknown[]; facilities: number[] | null; scheduleId: string | undefined },
): Promise<InstanceRow[]> {
  if (scheduleId !== undefined) return dataSource.query(LIST_SCHEDULE, [...range, facilities, scheduleId]);
  return facilities === null
    ? dataSource.query(LIST_ALL, range)
    : dataSource.query(LIST_FACILITIES, [...range, facilities]);
}
