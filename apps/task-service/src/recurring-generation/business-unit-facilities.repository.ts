import { Injectable } from '@nestjs/common';
import type { BusinessUnitChangeV1 } from '@platform/contracts';
import type { EntityManager } from 'typeorm';

/** State of a business unit after a change was recorded. */
export interface NotedUnit {
  /** Whether the change is dated more than 5 min ahead of the database's clock. */
  readonly isAhead: boolean;
  /** Whether a younger deactivation is known, which cancels the effect of this change. */
  readonly isDeactivatedLater: boolean;
  /** List of a younger `Updated`; null if none is known. */
  readonly youngerList: number[] | null;
  /** Date of the last `Updated`, to the microsecond; null if none is known. */
  readonly listedAt: string | null;
  /**
   * Whether an activation precedes the last `Updated`, i.e. the unit has the facilities on its list and those
   * activated later.
   */
  readonly isListed: boolean;
}

/**
 * First key of the advisory locks of facilities. The second is the facility id modulo LOCK_COUNT, because a
 * server has room for only some thousand locks.
 */
const FACILITY_LOCK_CLASS = 0x6275_6e69;
const LOCK_COUNT = 64;

/**
 * Maximum lead of a change over the database's clock. A later date would make all following changes look
 * stale. Source: docs/spec-gaps.md.
 */
const MAX_LEAD = '5 minutes';

/** Maximum recent activation dates stored per unit, in addition to the oldest. */
const MAX_ACTIVATIONS = 100;

// Hand-written SQL: one statement that creates or locks the unit's row, which serialises the changes of one
// unit, and records the change. `task.writes_units` tells the database triggers that they need not derive the
// unit's state, as they do for the previous release. All activations since the last deactivation are stored
// with their dates, because a late deactivation may end some of them, and a list counts only if an activation
// precedes it.
const NOTE_CHANGE = `
  INSERT INTO task.business_units AS unit (business_unit_id, activations, deactivated_at, listed_at, listed_facilities)
  VALUES ($1,
    CASE WHEN $2 = 'Activated' THEN ARRAY[$3::timestamptz] ELSE '{}' END,
    CASE WHEN $2 = 'Deactivated' THEN $3::timestamptz END,
    CASE WHEN $2 = 'Updated' THEN $3::timestamptz END,
    CASE WHEN $2 = 'Updated' THEN $4::bigint[] END)
  ON CONFLICT (business_unit_id) DO UPDATE SET
    activations = CASE
      WHEN $2 = 'Activated' AND $3::timestamptz < unit.deactivated_at THEN unit.activations
      WHEN $2 = 'Activated' THEN ARRAY(
        SELECT dated.at FROM (
          SELECT known.at, row_number() OVER (ORDER BY known.at) AS oldest, row_number() OVER (ORDER BY known.at DESC) AS youngest
          FROM (SELECT DISTINCT at FROM unnest(unit.activations || $3::timestamptz) AS at) AS known) AS dated
        WHERE dated.oldest = 1 OR dated.youngest <= ${String(MAX_ACTIVATIONS)} ORDER BY dated.at)
      WHEN $2 = 'Deactivated' THEN ARRAY(SELECT at FROM unnest(unit.activations) AS at WHERE at > $3::timestamptz ORDER BY at)
      ELSE unit.activations END,
    deactivated_at = greatest(unit.deactivated_at, excluded.deactivated_at),
    listed_at = greatest(unit.listed_at, excluded.listed_at),
    listed_facilities = CASE
      WHEN $2 <> 'Updated' OR $3::timestamptz < unit.listed_at THEN unit.listed_facilities
      ELSE excluded.listed_facilities END
  RETURNING $3::timestamptz > now() + interval '${MAX_LEAD}' AS "isAhead",
    coalesce($3::timestamptz < deactivated_at, false) AS "isDeactivatedLater",
    CASE WHEN $3::timestamptz < listed_at THEN listed_facilities::float8[] END AS "youngerList",
    listed_at::text AS "listedAt",
    coalesce(activations[1] <= listed_at, false) AS "isListed",
    set_config('task.writes_units', 'yes', true)`;

// Hand-written SQL: advisory locks, acquired in ascending order, so that two changes with common facilities
// do not deadlock.
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

// Hand-written SQL: decides and writes all pairs in one statement. Delayed retries arrive out of order: a
// change older than the applied one is stale. A change of the same instant is not, because the order of the
// two is unknown. A list does not change the pair's activation date. Changes that release 0.2 applied are
// known per business unit only.
const ACTIVATE = `
  WITH active AS MATERIALIZED (
    SELECT facility_id FROM task.business_unit_facilities WHERE business_unit_id = $1 AND is_active
  ), written AS (
    INSERT INTO task.business_unit_facilities AS pair (business_unit_id, facility_id, is_active, event_id, occurred_at, activated_at)
    SELECT $1, facility_id, true, $2, $3, CASE WHEN $5 THEN '-infinity' ELSE $3::timestamptz END
    FROM unnest($4::bigint[]) AS facility_id
    WHERE NOT EXISTS (SELECT 1 FROM task.business_unit_changes AS earlier
      WHERE earlier.business_unit_id = $1 AND earlier.per_unit_at > $3)
    ON CONFLICT (business_unit_id, facility_id) DO UPDATE
      SET is_active = true, event_id = excluded.event_id, occurred_at = excluded.occurred_at, applied_at = now(),
        activated_at = greatest(excluded.activated_at, pair.activated_at,
          CASE WHEN pair.is_active AND pair.activated_at IS NULL THEN pair.occurred_at END)
      WHERE pair.occurred_at <= excluded.occurred_at
    RETURNING facility_id
  )
  SELECT written.facility_id::float8 AS "facilityId", active.facility_id IS NULL AS "isNew"
  FROM written LEFT JOIN active USING (facility_id)
  ORDER BY written.facility_id`;

// Hand-written SQL: one statement, like ACTIVATE. Ends the unit's active pairs, except those on the list.
const END_UNLISTED = `
  WITH ended AS (
    UPDATE task.business_unit_facilities AS pair
    SET is_active = false, event_id = $2, occurred_at = $3, applied_at = now()
    WHERE business_unit_id = $1 AND is_active AND facility_id <> ALL ($4::bigint[]) AND occurred_at <= $3
      AND NOT EXISTS (SELECT 1 FROM task.business_unit_changes AS earlier
        WHERE earlier.business_unit_id = $1 AND earlier.per_unit_at > $3)
    RETURNING facility_id
  )
  SELECT facility_id::float8 AS "facilityId" FROM ended ORDER BY facility_id`;

// Hand-written SQL: one statement, like ACTIVATE. Ends the unit's active pairs, except those activated later.
// A pair that only lists have changed since its activation counts by the date of that activation. A pair
// written by the previous release counts by its last change. Listed facilities that were not active are
// written as well, only to inform that release.
const DEACTIVATE = `
  WITH active AS MATERIALIZED (
    SELECT facility_id FROM task.business_unit_facilities WHERE business_unit_id = $1 AND is_active
  ), written AS (
    INSERT INTO task.business_unit_facilities AS pair (business_unit_id, facility_id, is_active, event_id, occurred_at)
    SELECT $1, facility_id, false, $2, $3
    FROM (SELECT facility_id FROM active UNION SELECT unnest($4::bigint[])) AS ended
    WHERE NOT EXISTS (SELECT 1 FROM task.business_unit_changes AS earlier
      WHERE earlier.business_unit_id = $1 AND earlier.per_unit_at > $3)
    ON CONFLICT (business_unit_id, facility_id) DO UPDATE
      SET is_active = false, event_id = excluded.event_id, occurred_at = excluded.occurred_at, applied_at = now()
      WHERE CASE WHEN pair.is_active THEN coalesce(pair.activated_at, pair.occurred_at) ELSE pair.occurred_at END <= excluded.occurred_at
    RETURNING facility_id
  )
  SELECT facility_id::float8 AS "facilityId" FROM written JOIN active USING (facility_id) ORDER BY facility_id`;

/** Every statement on `task.business_units` and `task.business_unit_facilities`. */
@Injectable()
export class BusinessUnitFacilitiesRepository {
  /**
   * Records the change for its business unit, which stays locked until the transaction ends. Returns the
   * state of the unit.
   */
  async noteChange(
    manager: EntityManager,
    { businessUnitId, changeType, occurredAtUtc }: BusinessUnitChangeV1,
    facilityIds: readonly number[],
  ): Promise<NotedUnit> {
    const values = [businessUnitId, changeType, occurredAtUtc, facilityIds];
    const rows = await manager.query<NotedUnit[]>(NOTE_CHANGE, values);
    if (!rows[0]) throw new Error('the change of the business unit was not recorded');
    return rows[0];
  }

  /**
   * Locks the facilities until the transaction ends, which serialises the changes of each across replicas.
   * Call it before `activate`, whose statement must see what the previous holder committed.
   */
  async lock(manager: EntityManager, facilityIds: readonly number[]): Promise<void> {
    await manager.query(LOCK, [FACILITY_LOCK_CLASS, facilityIds]);
  }

  /** Like `lock`, including all facilities that the unit holds active. Call it before pairs are ended. */
  async lockWithActive(
    manager: EntityManager,
    { businessUnitId }: BusinessUnitChangeV1,
    facilityIds: readonly number[],
  ): Promise<void> {
    await manager.query(LOCK_WITH_ACTIVE, [FACILITY_LOCK_CLASS, facilityIds, businessUnitId]);
  }

  /**
   * Activates the pairs of the change's business unit and these facilities. Returns, in ascending order, the
   * facilities whose pair had no younger change, and whether the pair was inactive before.
   * @param listedAt date of the list that contains the facilities; null if they come from the activation
   * itself
   */
  activate(
    manager: EntityManager,
    { businessUnitId, eventId, occurredAtUtc }: BusinessUnitChangeV1,
    { facilityIds, listedAt }: { facilityIds: readonly number[]; listedAt: string | null },
  ): Promise<{ facilityId: number; isNew: boolean }[]> {
    const values = [businessUnitId, eventId, listedAt ?? occurredAtUtc, facilityIds, listedAt !== null];
    return manager.query(ACTIVATE, values);
  }

  /**
   * Ends the active pairs of the change's business unit, except those on its list and those with a younger
   * change. Returns the facilities of the ended pairs, in ascending order.
   */
  async endUnlisted(
    manager: EntityManager,
    { businessUnitId, eventId, occurredAtUtc }: BusinessUnitChangeV1,
    listed: readonly number[],
  ): Promise<number[]> {
    const values = [businessUnitId, eventId, occurredAtUtc, listed];
    const rows = await manager.query<{ facilityId: number }[]>(END_UNLISTED, values);
    return rows.map(({ facilityId }) => facilityId);
  }

  /**
   * Ends the active pairs of the change's business unit, except those activated later. Returns the facilities
   * of the ended pairs, in ascending order.
   */
  async deactivate(
    manager: EntityManager,
    { businessUnitId, eventId, occurredAtUtc }: BusinessUnitChangeV1,
    listed: readonly number[],
  ): Promise<number[]> {
    const values = [businessUnitId, eventId, occurredAtUtc, listed];
    const rows = await manager.query<{ facilityId: number }[]>(DEACTIVATE, values);
    return rows.map(({ facilityId }) => facilityId);
  }
}
