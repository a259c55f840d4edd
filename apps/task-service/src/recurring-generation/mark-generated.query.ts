import type { EntityManager } from 'typeorm';

const UPDATE = `UPDATE task.schedules SET generated_until = $2 WHERE schedule_id = ANY ($1::uuid[])`;

/** Notes how far the locked schedules have been generated. */
export async function markGenerated(
  manager: EntityManager,
  scheduleIds: readonly string[],
  until: Date,
): Promise<void> {
  await manager.query(UPDATE, [scheduleIds, until]);
}
