import type { EntityManager } from 'typeorm';
import type { TaskInstance } from './instance';
import { INSTANCE_COLUMNS, instanceOf } from './instance-columns';
import type { InstanceRow } from './instance-columns';

const SELECT = `
  SELECT ${INSTANCE_COLUMNS}, now() AS now FROM task.instances WHERE task_instance_id = $1 FOR NO KEY UPDATE`;

/** Reads the instance and keeps everybody else from changing it until the transaction ends; with the database's time. */
export async function findAndLockInstance(
  manager: EntityManager,
  taskInstanceId: string,
): Promise<{ instance: TaskInstance; now: Date } | null> {
  const rows: (InstanceRow & { now: Date })[] = await manager.query(SELECT, [taskInstanceId]);
  if (!rows[0]) return null;
  const { now, ...row } = rows[0];
  return { instance: instanceOf(row), now };
}
