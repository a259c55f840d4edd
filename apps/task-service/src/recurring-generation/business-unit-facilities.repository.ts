import { Injectable } from '@nestjs/common';
import type { BusinessUnitChangeV1 } from '@platform/contracts';
import type { EntityManager } from 'typeorm';

/** First key of the advisory locks of facilities; the second is one of a few, because a server has room for some thousand locks only. */
const FACILITY_LOCK_CLASS = 0x6275_6e69;
const LOCK_COUNT = 64;

/** A change dated later than this would make all that follow it look stale. Source: docs/spec-gaps.md. */
const LONGEST_LEAD = '5 minutes';

// By hand: advisory locks. In order, so that two changes with common facilities wait for each other instead of colliding.
const LOCK = `
  SELECT $3::timestamptz > now() + interval '${LONGEST_LEAD}' AS "isAhead", count(pg_advisory_xact_lock($1, number))
  FROM (SELECT DISTINCT (facility_id % ${String(LOCK_COUNT)})::int AS number
    FROM unnest($2::bigint[]) AS facility_id ORDER BY number) AS locks`;

// By hand: decides and writes all pairs at once. Delayed retries overtake, so an older change than the applied one is stale; one of the same
// instant is not, since it cannot be told which came first. What the previous release applied is known per business unit.
const APPLY = `
  INSERT INTO task.business_unit_facilities AS pair (business_unit_id, facility_id, is_active, event_id, occurred_at)
  SELECT $1, facility_id, $2, $3, $4 FROM unnest($5::bigint[]) AS facility_id
  WHERE NOT EXISTS (SELECT 1 FROM task.business_unit_changes AS earlier
    WHERE earlier.business_unit_id = $1 AND earlier.per_unit_at > $4)
  ON CONFLICT (business_unit_id, facility_id) DO UPDATE
    SET is_active = excluded.is_active, event_id = excluded.event_id, occurred_at = excluded.occurred_at,
      applied_at = now()
    WHERE pair.occurred_at <= excluded.occurred_at
  RETURNING facility_id::float8 AS "facilityId"`;

/** Every statement on `task.business_unit_facilities`. */
@Injectable()
export class BusinessUnitFacilitiesRepository {
  /** Locks the facilities until the transaction ends, so that the changes of one take turns across replicas; before `apply`, whose statement
   *  must see what the last holder did. False, and nothing may be applied, for a change dated too far ahead. */
  async lock(
    manager: EntityManager,
    { occurredAtUtc }: BusinessUnitChangeV1,
    facilityIds: readonly number[],
  ): Promise<boolean> {
    const rows: { isAhead: boolean | null }[] = await manager.query(LOCK, [
      FACILITY_LOCK_CLASS,
      facilityIds,
      occurredAtUtc,
    ]);
    return rows[0]?.isAhead === false;
  }

  /** Notes the change for each pair of its business unit and these facilities. Gives the facilities, in ascending order, whose pair knew no
   *  newer one. */
  async apply(
    manager: EntityManager,
    { businessUnitId, eventId, changeType, occurredAtUtc }: BusinessUnitChangeV1,
    facilityIds: readonly number[],
  ): Promise<number[]> {
    const values = [businessUnitId, changeType === 'Activated', eventId, occurredAtUtc, facilityIds];
    const rows: { facilityId: number }[] = await manager.query(APPLY, values);
    return rows.map(({ facilityId }) => facilityId).sort((left, right) => left - right);
  }
}
