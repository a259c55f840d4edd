import type { DataSource } from 'typeorm';
import type { TaskInstance } from './instance';
import { INSTANCE_COLUMNS, instanceOf } from './instance-columns';
import type { InstanceRow } from './instance-columns';

const SELECT = `SELECT ${INSTANCE_COLUMNS} FROM task.instances WHERE task_instance_id = $1`;

export async function findInstance(
  dataSource: DataSource,
  taskInstanceId: string,
): Promise<TaskInstance | null> {
  const rows: InstanceRow[] = await dataSource.query(SELECT, [taskInstanceId]);
  return rows[0] ? instanceOf(rows[0]) : null;
}
