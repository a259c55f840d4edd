import type { Actor } from '@platform/contracts';
import type { EntityManager } from 'typeorm';

/** How an instance was completed. */
export interface Completion {
  readonly completedAt: Date;
  readonly completedBy: Actor;
  readonly notes: string | null;
}

const UPDATE = `
  UPDATE task.instances
  SET status = 'Completed', completed_at = $2, completed_by_person_id = $3, completed_by_name = $4,
    completed_by_persona = $5, notes = $6
  WHERE task_instance_id = $1`;

/** Completes an instance that the transaction has locked. */
export async function markInstanceCompleted(
  manager: EntityManager,
  taskInstanceId: string,
  { completedAt, completedBy, notes }: Completion,
): Promise<void> {
  await manager.query(UPDATE, [
    taskInstanceId,
    completedAt,
    completedBy.personId,
    completedBy.name,
    completedBy.persona,
    notes,
  ]);
}
