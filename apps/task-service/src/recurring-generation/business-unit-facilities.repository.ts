import { Injectable } from '@nestjs/common';
import type { BusinessUnitChangeV1 } from '@platform/contracts';
import type { EntityManager } from 'typeorm';

/** A business unit right after a change was noted for it. */
export interface NotedUnit {
  /** The change is dated more than five minutes ahead of the database's clock. */
  readonly isAhead: boolean;
  /** A younger deactivation is known: it ended whatever this change does. */
  readonly isDeactivatedLater: boolean;
  /** The list of a younger `Updated`; null when none is known. */
  readonly youngerList: number[] | null;
  /** The unit was active at the date of the change. */
  readonly isActive: boolean;
}

/** First key of the advisory locks of facilities; the second is one of a few, because a server has room for some thousand locks only. */
const FACILITY_LOCK_CLASS = 0x6275_6e69;
const LOCK_COUNT = 64;

/** A change dated later than this would make all that follow it look stale. Source: docs/spec-gaps.md. */
const LONGEST_LEAD = '5 minutes';

// Hand-written SQL: one statement that creates or locks the unit's row, so that the changes of one unit take
// turns, and notes the change. It names itself to the database trigger that concludes from the pairs what the
// previous release has done. A deactivation that comes late leaves the unit active if a younger change
// activated any of its facilities.
const NOTE_CHANGE = `
  INSERT INTO task.business_units AS unit (business_unit_id, active_since, deactivated_at, listed_at, listed_facilities)
  VALUES ($1,
    CASE WHEN $2 = 'Activated' THEN $3::timestamptz END,
    CASE WHEN $2 = 'Deactivated' THEN $3::timestamptz END,
    CASE WHEN $2 = 'Updated' THEN $3::timestamptz END,
    CASE WHEN $2 = 'Updated' THEN $4::bigint[] END)
  ON CONFLICT (business_unit_id) DO UPDATE SET
    active_since = CASE
      WHEN $2 = 'Activated' AND $3::timestamptz < unit.deactivated_at THEN unit.active_since
      WHEN $2 = 'Activated' THEN least(unit.active_since, $3::timestamptz)
      WHEN $2 = 'Deactivated' AND unit.active_since <= $3::timestamptz THEN (
        SELECT min(pair.occurred_at) FROM task.business_unit_facilities AS pair
        WHERE pair.business_unit_id = $1 AND pair.is_active AND pair.occurred_at > $3::timestamptz)
      ELSE unit.active_since END,
    deactivated_at = greatest(unit.deactivated_at, excluded.deactivated_at),
    listed_at = greatest(unit.listed_at, excluded.listed_at),
    listed_facilities = CASE
      WHEN $2 <> 'Updated' OR $3::timestamptz < unit.listed_at THEN unit.listed_facilities
      ELSE excluded.listed_facilities END
  RETURNING $3::timestamptz > now() + interval '${LONGEST_LEAD}' AS "isAhead",
    coalesce($3::timestamptz < deactivated_at, false) AS "isDeactivatedLater",
    CASE WHEN $3::timestamptz < listed_at THEN listed_facilities::float8[] END AS "youngerList",
    coalesce(active_since <= $3::timestamptz, false) AS "isActive",
    set_config('task.writes_units', 'yes', true)`;

// Hand-written SQL: advisory locks. In order, so that two changes with common facilities wait for each other
// instead of colliding.
const LOCK = `
  SELECT count(pg_advisory_xact_lock($1, number))
  FROM (SELECT DISTINCT (facility_id % ${String(LOCK_COUNT)})::int AS number
    FROM unnest($2::bigint[]) AS facility_id ORDER BY number) AS locks`;

const LOCK_WITH_ACTIVE = `
  SELECT count(pg_advisory_xact_lock($1, number))
  FROM (SELECT DISTINCT (facility_id % ${String(LOCK_COUNT)})::int AS number
    FROM (SELECT unnest($2::bigint[]) UNION
      SELECT facility_id FROM task.business_unit_facilities WHERE business_unit_id = $3 AND is_active) AS facility (facility_id)
    ORDER BY number) AS locks`;

// Hand-written SQL: decides and writes all pairs at once. Delayed retries overtake, so an older change than
// the applied one is stale; one of the same instant is not, since it cannot be told which came first. What
// release 0.2 applied is known per business unit.
const ACTIVATE = `
  WITH active AS MATERIALIZED (
    SELECT facility_id FROM task.business_unit_facilities WHERE business_unit_id = $1 AND is_active
  ), written AS (
    INSERT INTO task.business_unit_facilities AS pair (business_unit_id, facility_id, is_active, event_id, occurred_at)
    SELECT $1, facility_id, true, $2, $3 FROM unnest($4::bigint[]) AS facility_id
    WHERE NOT EXISTS (SELECT 1 FROM task.business_unit_changes AS earlier
      WHERE earlier.business_unit_id = $1 AND earlier.per_unit_at > $3)
    ON CONFLICT (business_unit_id, facility_id) DO UPDATE
      SET is_active = true, event_id = excluded.event_id, occurred_at = excluded.occurred_at, applied_at = now()
      WHERE pair.occurred_at <= excluded.occurred_at
    RETURNING facility_id
  )
  SELECT written.facility_id::float8 AS "facilityId", active.facility_id IS NULL AS "isNew"
  FROM written LEFT JOIN active USING (facility_id)
  ORDER BY written.facility_id`;

// Hand-written SQL: as above. Ends the listed pairs and the unit's active ones, but for those to keep.
const DEACTIVATE = `
  WITH written AS (
    INSERT INTO task.business_unit_facilities AS pair (business_unit_id, facility_id, is_active, event_id, occurred_at)
    SELECT $1, facility_id, false, $2, $3
    FROM (SELECT facility_id FROM task.business_unit_facilities WHERE business_unit_id = $1 AND is_active
      UNION SELECT unnest($4::bigint[]) EXCEPT SELECT unnest($5::bigint[])) AS ended
    WHERE NOT EXISTS (SELECT 1 FROM task.business_unit_changes AS earlier
      WHERE earlier.business_unit_id = $1 AND earlier.per_unit_at > $3)
    ON CONFLICT (business_unit_id, facility_id) DO UPDATE
      SET is_active = false, event_id = excluded.event_id, occurred_at = excluded.occurred_at, applied_at = now()
      WHERE pair.occurred_at <= excluded.occurred_at
    RETURNING facility_id
  )
  SELECT facility_id::float8 AS "facilityId" FROM written ORDER BY facility_id`;

/** Every statement on `task.business_units` and `task.business_unit_facilities`. */
@Injectable()
export class BusinessUnitFacilitiesRepository {
  /** Notes the change for its business unit, which stays locked until the transaction ends, and tells how the unit stands. */
  async noteChange(
    manager: EntityManager,
    { businessUnitId, changeType, occurredAtUtc }: BusinessUnitChangeV1,
    facilityIds: readonly number[],
  ): Promise<NotedUnit> {
    const values = [businessUnitId, changeType, occurredAtUtc, facilityIds];
    const rows = await manager.query<NotedUnit[]>(NOTE_CHANGE, values);
    if (!rows[0]) throw new Error('the business unit was not noted');
    return rows[0];
  }

  /** Locks the facilities until the transaction ends, so that the changes of one take turns across replicas; before `activate`, whose
   *  statement must see what the last holder did. */
  async lock(manager: EntityManager, facilityIds: readonly number[]): Promise<void> {
    await manager.query(LOCK, [FACILITY_LOCK_CLASS, facilityIds]);
  }

  /** As `lock`, with all facilities that the unit holds active; before `deactivate`. */
  async lockWithActive(
    manager: EntityManager,
    { businessUnitId }: BusinessUnitChangeV1,
    facilityIds: readonly number[],
  ): Promise<void> {
    await manager.query(LOCK_WITH_ACTIVE, [FACILITY_LOCK_CLASS, facilityIds, businessUnitId]);
  }

  /** Activates the pairs of the change's business unit and these facilities. Gives the facilities, in ascending order, whose pair knew no
   *  younger change, and whether the pair was inactive before. */
  activate(
    manager: EntityManager,
    { businessUnitId, eventId, occurredAtUtc }: BusinessUnitChangeV1,
    facilityIds: readonly number[],
  ): Promise<{ facilityId: number; isNew: boolean }[]> {
    return manager.query(ACTIVATE, [businessUnitId, eventId, occurredAtUtc, facilityIds]);
  }

  /** Ends all active pairs of the change's business unit and those with the listed facilities, except the facilities to keep. Gives the
   *  facilities, in ascending order, whose pair knew no younger change. */
  async deactivate(
    manager: EntityManager,
    { businessUnitId, eventId, occurredAtUtc }: BusinessUnitChangeV1,
    { listed, kept }: { listed: readonly number[]; kept: readonly number[] },
  ): Promise<number[]> {
    const values = [businessUnitId, eventId, occurredAtUtc, listed, kept];
    const rows = await manager.query<{ facilityId: number }[]>(DEACTIVATE, values);
    return rows.map(({ facilityId }) => facilityId);
  }
}
