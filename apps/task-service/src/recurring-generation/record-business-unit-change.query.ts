import type { BusinessUnitChangeV1 } from '@platform/contracts';
import type { EntityManager } from 'typeorm';

// The row serialises the changes of a business unit across replicas. Delayed retries overtake, so an older change than the
// applied one is stale; one of the same instant is not, since it cannot be told which came first.
const UPSERT = `
  INSERT INTO task.business_unit_changes AS applied (business_unit_id, event_id, change_type, occurred_at)
  VALUES ($1, $2, $3, $4)
  ON CONFLICT (business_unit_id) DO UPDATE
    SET event_id = excluded.event_id, change_type = excluded.change_type, occurred_at = excluded.occurred_at,
      applied_at = now()
    WHERE applied.occurred_at <= excluded.occurred_at
  RETURNING 1`;

/** Notes the change as the last one applied to its business unit; false when a newer one was applied already. */
export async function recordBusinessUnitChange(
  manager: EntityManager,
  { businessUnitId, eventId, changeType, occurredAtUtc }: BusinessUnitChangeV1,
): Promise<boolean> {
  const rows = await manager.query<unknown[]>(UPSERT, [businessUnitId, eventId, changeType, occurredAtUtc]);
  return rows.length > 0;
}
