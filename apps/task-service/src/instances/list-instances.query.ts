import type { DataSource } from 'typeorm';
import type { FacilityScope } from '../access/facility-scope';
import type { TaskInstance } from './instance';
import { INSTANCE_COLUMNS, instanceOf } from './instance-columns';
import type { InstanceRow } from './instance-columns';
import type { InstanceStatus } from './instance-status';

const SELECT = `
  SELECT ${INSTANCE_COLUMNS} FROM task.instances
  WHERE ($1::bigint[] IS NULL OR facility_id = ANY ($1)) AND ($2::text IS NULL OR status = $2)
    AND ($3::uuid IS NULL OR schedule_id = $3)
    AND ($4::timestamptz IS NULL OR due_at >= $4) AND ($5::timestamptz IS NULL OR due_at < $5)
    AND ($6::timestamptz IS NULL OR (due_at, task_instance_id) > ($6, $7::uuid))
  ORDER BY due_at, task_instance_id
  LIMIT $8`;

/** Filters of the instance list; `dueFrom` is inclusive, `dueTo` exclusive. */
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
  const rows: InstanceRow[] = await dataSource.query(SELECT, [
    filters.scope === 'all' ? null : filters.scope,
    filters.status ?? null,
    filters.scheduleId ?? null,
    filters.dueFrom ?? null,
    filters.dueTo ?? null,
    dueAt,
    taskInstanceId,
    limit,
  ]);
  return rows.map(instanceOf);
}
