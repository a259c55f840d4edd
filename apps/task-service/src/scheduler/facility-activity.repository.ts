import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import type { Trigger } from './trigger.entity';

/** What is known of facilities before they are scheduled. */
export interface KnownActivity {
  /** The database's time of the transaction. */
  readonly now: Date;
  /** Facilities that no business unit held active until now. */
  readonly inactive: ReadonlySet<number>;
  /** What their removed triggers were. */
  readonly remembered: ReadonlyMap<number, RememberedTrigger>;
}

/** The settings of a trigger that was removed when the last business unit let go of its facility. */
type RememberedTrigger = Pick<Trigger, 'schedule' | 'timeZone' | 'jitterSeconds' | 'state'>;

// Hand-written SQL: in a batch, and by what another table says. A facility that was inactive already keeps
// what is remembered of its trigger.
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

// Hand-written SQL: the time comes with it.
const KNOWN_ACTIVITY = `
  SELECT now() AS now, activity.facility_id::float8 AS "facilityId", activity.inactive_since IS NOT NULL AS "isInactive",
    activity.schedule, activity.time_zone AS "timeZone", activity.jitter_seconds AS "jitterSeconds",
    activity.is_paused AS "isPaused"
  FROM (SELECT $1::bigint[] AS facilities) AS asked
  LEFT JOIN task.facility_activity AS activity ON activity.facility_id = ANY (asked.facilities)`;

// Hand-written SQL: in a batch. What was remembered is in the triggers by now.
const NOTE_ACTIVE = `
  INSERT INTO task.facility_activity (facility_id, active_since)
  SELECT facility_id, now() FROM unnest($1::bigint[]) AS facility_id ORDER BY facility_id
  ON CONFLICT (facility_id) DO UPDATE SET inactive_since = NULL, active_since = now(),
    schedule = NULL, time_zone = NULL, jitter_seconds = NULL, is_paused = false`;

// Hand-written SQL: nothing is inserted for a facility that has no row.
const FORGET = `
  UPDATE task.facility_activity SET schedule = NULL, time_zone = NULL, jitter_seconds = NULL, is_paused = false
  WHERE facility_id = $1`;

interface ActivityRow {
  readonly now: Date;
  /** Null in the only row when nothing is known of any facility. */
  readonly facilityId: number | null;
  readonly isInactive: boolean;
  readonly schedule: string | null;
  readonly timeZone: string | null;
  readonly jitterSeconds: number | null;
  readonly isPaused: boolean;
}

/**
 * Every statement on `task.facility_activity`: since when business units hold a facility active, and what its
 * trigger was before.
 */
@Injectable()
export class FacilityActivityRepository {
  /**
   * Removes the triggers of those facilities that no business unit holds active any more, and remembers them:
   * their settings and their pause come back with the next activation.
   */
  async retireInactive(manager: EntityManager, facilityIds: readonly number[]): Promise<void> {
    await manager.query(RETIRE_INACTIVE, [facilityIds]);
  }

  /** What is remembered of the facilities, with the database's time. */
  async find(manager: EntityManager, facilityIds: readonly number[]): Promise<KnownActivity> {
    const rows = await manager.query<ActivityRow[]>(KNOWN_ACTIVITY, [facilityIds]);
    if (!rows[0]) throw new Error('the database gave no time');
    const inactive = new Set<number>();
    const remembered = new Map<number, RememberedTrigger>();
    for (const { facilityId, isInactive, schedule, timeZone, jitterSeconds, isPaused } of rows) {
      if (facilityId === null) continue;
      if (isInactive) inactive.add(facilityId);
      if (schedule === null || timeZone === null) continue;
      const state = isPaused ? 'PAUSED' : 'WAITING';
      remembered.set(facilityId, { schedule, timeZone, jitterSeconds: jitterSeconds ?? 0, state });
    }
    return { now: rows[0].now, inactive, remembered };
  }

  /** Facilities that have triggers from now on: what was due earlier is not generated for them. */
  async noteActive(manager: EntityManager, facilityIds: readonly number[]): Promise<void> {
    if (facilityIds.length > 0) await manager.query(NOTE_ACTIVE, [facilityIds]);
  }

  /** Forgets the removed trigger: it was not to come back. */
  async forgetTrigger(manager: EntityManager, facilityId: number): Promise<void> {
    await manager.query(FORGET, [facilityId]);
  }
}
