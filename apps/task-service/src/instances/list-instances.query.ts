import type { DataSource } from 'typeorm';
import type { FacilityScope } from '../access/facility-scope';
import type { TaskInstance } from './instance';
import { INSTANCE_COLUMNS, instanceOf } from './instance-columns';
import type { InstanceRow } from './instance-columns';
import { INSTANCE_STATUSES } from './instance-status';
import type { InstanceStatus } from './instance-status';

const CONDITIONS = `
  ($3::timestamptz IS NULL OR due_at >= $3) AND ($4::timestamptz IS NULL OR due_at < $4)
    AND ($5::timestamptz IS NULL OR (due_at, task_instance_id) > ($5, $6::uuid))`;

// A page for each facility and status, each one range of an index, and of these the first: a list costs what it shows, not what it
// passes over, whether one facility has most of the instances or one status none. As a plain filter a rare status reads the whole table.
// LIMIT 1 has each row of the page looked up by itself: a join read half an index, depending on the statistics of the day.
const page = (sources: string, equal: string): string => `
  WITH candidate AS (
    SELECT ranged.id FROM ${sources} CROSS JOIN LATERAL (
      SELECT due_at, task_instance_id AS id FROM task.instances
      WHERE ${equal} AND ${CONDITIONS}
      ORDER BY due_at, task_instance_id
      LIMIT $7) AS ranged
    ORDER BY due_at, id
    LIMIT $7)
  SELECT ${INSTANCE_COLUMNS} FROM candidate CROSS JOIN LATERAL (
    SELECT * FROM task.instances WHERE task_instance_id = candidate.id LIMIT 1) AS listed
  ORDER BY due_at, task_instance_id`;

const STATUSES = 'unnest($2::text[]) AS wanted (status_key)';

const LIST_ALL = page(STATUSES, '$1::bigint[] IS NULL AND status = wanted.status_key');
const LIST_FACILITIES = page(
  `unnest($1::bigint[]) AS mine (facility_key) CROSS JOIN ${STATUSES}`,
  'facility_id = mine.facility_key AND status = wanted.status_key',
);

// A schedule has few instances; they come by the index that keeps them unique.
const LIST_SCHEDULE = `
  SELECT ${INSTANCE_COLUMNS} FROM task.instances
  WHERE schedule_id = $8 AND ($1::bigint[] IS NULL OR facility_id = ANY ($1)) AND status = ANY ($2) AND ${CONDITIONS}
  ORDER BY due_at, task_instance_id
  LIMIT $7`;

/** Filters of the instance list; `dueFrom` is inclusive, `dueTo` exclusive, both ISO 8601 with an offset. */
export interface InstanceFilters {
  readonly scope: FacilityScope;
  readonly status?: InstanceStatus | undefined;
  readonly scheduleId?: string | undefined;
  readonly dueFrom?: string | undefined;
  readonly dueTo?: string | undefined;
}

/** Instances that match, by due time, after the given position. */
export async function listInstances(
  dataSource: DataSource,
  filters: InstanceFilters,
  { after, limit }: { after: readonly unknown[]; limit: number },
): Promise<TaskInstance[]> {
  const [dueAt = null, taskInstanceId = null] = after;
  const parameters = [
    filters.scope === 'all' ? null : [...new Set(filters.scope)],
    filters.status === undefined ? INSTANCE_STATUSES : [filters.status],
    // As dates: PostgreSQL refuses instants that ISO 8601 allows, with an offset of 23 h or in the year 0.
    filters.dueFrom === undefined ? null : new Date(filters.dueFrom),
    filters.dueTo === undefined ? null : new Date(filters.dueTo),
    dueAt,
    taskInstanceId,
    limit,
  ];
  const rows: InstanceRow[] =
    filters.scheduleId === undefined
      ? await dataSource.query(filters.scope === 'all' ? LIST_ALL : LIST_FACILITIES, parameters)
      : await dataSource.query(LIST_SCHEDULE, [...parameters, filters.scheduleId]);
  return rows.map(instanceOf);
}
