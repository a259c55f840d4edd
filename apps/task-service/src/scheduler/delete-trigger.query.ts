import type { EntityManager } from 'typeorm';

const DELETE = `
  WITH deleted AS (DELETE FROM task.triggers WHERE facility_id = $1 RETURNING 1) SELECT count(*)::int AS count FROM deleted`;

/** Removes the facility's trigger; false when it had none. Waits for a fire under way. */
export async function deleteTrigger(manager: EntityManager, facilityId: number): Promise<boolean> {
  const rows = await manager.query<{ count: number }[]>(DELETE, [facilityId]);
  return (rows[0]?.count ?? 0) > 0;
}
