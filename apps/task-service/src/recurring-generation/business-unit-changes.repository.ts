import { Injectable } from '@nestjs/common';
import type { BusinessUnitChangeV1 } from '@platform/contracts';
import type { EntityManager } from 'typeorm';

// By hand: decides and writes at once. The row makes the changes of a business unit take turns across replicas. Delayed retries overtake, so an
// older change than the applied one is stale; one of the same instant is not, since it cannot be told which came first.
const RECORD = `
  INSERT INTO task.business_unit_changes AS applied (business_unit_id, event_id, change_type, occurred_at)
  VALUES ($1, $2, $3, $4)
  ON CONFLICT (business_unit_id) DO UPDATE
    SET event_id = excluded.event_id, change_type = excluded.change_type, occurred_at = excluded.occurred_at,
      applied_at = now()
    WHERE applied.occurred_at <= excluded.occurred_at
  RETURNING 1`;

/** Every statement on `task.business_unit_changes`. */
@Injectable()
export class BusinessUnitChangesRepository {
  /** Notes the change as the last one applied to its business unit; false when a newer one was applied already. */
  async record(
    manager: EntityManager,
    { businessUnitId, eventId, changeType, occurredAtUtc }: BusinessUnitChangeV1,
  ): Promise<boolean> {
    const values = [businessUnitId, eventId, changeType, occurredAtUtc];
    const rows = await manager.query<unknown[]>(RECORD, values);
    return rows.length > 0;
  }
}
