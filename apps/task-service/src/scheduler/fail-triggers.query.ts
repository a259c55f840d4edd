import type { EntityManager } from 'typeorm';

const UPDATE = `
  UPDATE task.triggers AS trigger SET state = 'ERROR', error = failed.error, updated_at = now()
  FROM unnest($1::bigint[], $2::text[]) AS failed (facility_id, error)
  WHERE trigger.facility_id = failed.facility_id`;

/** Takes triggers that cannot be evaluated out of the way of the others. Scheduling them again revives them. */
export async function failTriggers(
  manager: EntityManager,
  failed: readonly { facilityId: number; error: string }[],
): Promise<void> {
  if (failed.length === 0) return;
  await manager.query(UPDATE, [failed.map((each) => each.facilityId), failed.map((each) => each.error)]);
}
