import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { Trigger } from './trigger.entity';

/** Stored activity of facilities, read before their triggers are created. */
export interface KnownActivity {
  /** Database time of the transaction. */
  readonly now: Date;
  /** Facilities that are stored as inactive: no business unit held them active before this change. */
  readonly inactive: ReadonlySet<number>;
  /** Settings of their removed triggers, by facility. */
  readonly removedTriggers: ReadonlyMap<number, RemovedTrigger>;
}

/** Settings of a trigger that was removed when the last business unit deactivated its facility. */
type RemovedTrigger = Pick<Trigger, 'schedule' | 'timeZone' | 'jitterSeconds' | 'state'>;

// Hand-written SQL: a batch, joined with another table. A facility that was inactive already keeps its stored
// trigger.
const RETIRE_INACTIVE = `
  WITH inactive AS MATERIALIZED (
    SELECT facility_id FROM unnest($1::bigint[]) AS facility_id WHERE NOT EXISTS (
      SELECT 1 FROM task.business_unit_facilities AS pair WHERE pair.facility_id = facility_id.facility_id AND pair.is_active)
  ), removed AS (
    DELETE FROM task.triggers AS trigger USING inactive
    WHERE trigger.facility_id = ANY ($1) AND trigger.facility_id = inactive.facility_id
    RETURNING trigger.facility_id, trigger.schedule, trigger.time_zone, trigger.jitter_seconds, trigger.state
  )
  INSERT INTO task.facility_activity AS activity (facility_id, inactive_since, schedule, time_zone, jitter_seconds, is_paused)
  SELECT facility_id, now(), schedule, time_zone, jitter_seconds, coalesce(state = 'PAUSED', false)
  FROM inactive LEFT JOIN removed USING (facility_id)
  ORDER BY facility_id
  ON CONFLICT (facility_id) DO UPDATE SET
    inactive_since = CASE WHEN excluded.schedule IS NULL THEN coalesce(activity.inactive_since, excluded.inactive_since)
      ELSE excluded.inactive_since END,
    schedule = coalesce(excluded.schedule, activity.schedule), time_zone = coalesce(excluded.time_zone, activity.time_zone),
    jitter_seconds = coalesce(excluded.jitter_seconds, activity.jitter_seconds),
    is_paused = CASE WHEN excluded.schedule IS NULL THEN activity.is_paused ELSE excluded.is_paused END`;

// Hand-written SQL: also returns the database time, even if no facility has a row.
const KNOWN_ACTIVITY = `
  SELECT now() AS now, activity.facility_id::float8 AS "facilityId", activity.inactive_since IS NOT NULL AS "isInactive",
    activity.schedule, activity.time_zone AS "timeZone", activity.jitter_seconds AS "jitterSeconds",
    activity.is_paused AS "isPaused"
  FROM (SELECT $1::bigint[] AS facilities) AS asked
  LEFT JOIN task.facility_activity AS activity ON activity.facility_id = ANY (asked.facilities)`;

// Hand-written SQL: a batch. Clears the stored triggers, which have been created again by now.
const NOTE_ACTIVE = `
  INSERT INTO task.facility_activity (facility_id, active_since)
  SELECT facility_id, now() FROM unnest($1::bigint[]) AS facility_id ORDER BY facility_id
  ON CONFLICT (facility_id) DO UPDATE SET inactive_since = NULL, active_since = now(),
    schedule = NULL, time_zone = NULL, jitter_seconds = NULL, is_paused = false`;

// Hand-written SQL: an UPDATE, so that a facility without a row gets none.
const CLEAR_TRIGGER = `
  UPDATE task.facility_activity SET schedule = NULL, time_zone = NULL, jitter_seconds = NULL, is_paused = false
  WHERE facility_id = $1`;

interface ActivityRow {
  readonly now: Date;
  /** Null in the only row if no facility has a row. */
  readonly facilityId: number | null;
  readonly isInactive: boolean;
  readonly schedule: string | null;
  readonly timeZone: string | null;
  readonly jitterSeconds: number | null;
  readonly isPaused: boolean;
}

/**
 * All statements on `task.facility_activity`: since when business units have held a facility active, and its
 * removed trigger.
 */
@Injectable()
export class FacilityActivityRepository {
  /**
   * Removes the triggers of those facilities that no business unit holds active any more, and stores their
   * settings and their pause for the next activation.
   */
  async retireInactive(manager: EntityManager, facilityIds: readonly number[]): Promise<void> {
    await manager.query(RETIRE_INACTIVE, [facilityIds]);
  }

  /** Returns the stored activity of the facilities, and the database time. */
  async find(manager: EntityManager, facilityIds: readonly number[]): Promise<KnownActivity> {
    const rows = await manager.query<ActivityRow[]>(KNOWN_ACTIVITY, [facilityIds]);
    if (!rows[0]) throw new Error('the database returned no time');
    const inactive = new Set<number>();
    const removedTriggers = new Map<number, RemovedTrigger>();
    for (const { facilityId, isInactive, schedule, timeZone, jitterSeconds, isPaused } of rows) {
      if (facilityId === null) continue;
      if (isInactive) inactive.add(facilityId);
      if (schedule === null || timeZone === null) continue;
      const state = isPaused ? 'PAUSED' : 'WAITING';
      removedTriggers.set(facilityId, { schedule, timeZone, jitterSeconds: jitterSeconds ?? 0, state });
    }
    return { now: rows[0].now, inactive, removedTriggers };
  }

  /**
   * Records that the facilities have triggers from now on: earlier occurrences are not generated for them.
   */
  async noteActive(manager: EntityManager, facilityIds: readonly number[]): Promise<void> {
    if (facilityIds.length > 0) await manager.query(NOTE_ACTIVE, [facilityIds]);
  }

  /** Clears the stored trigger, so that an activation does not restore it. */
  async clearStoredTrigger(manager: EntityManager, facilityId: number): Promise<void> {
    await manager.query(CLEAR_TRIGGER, [facilityId]);
  }
}
