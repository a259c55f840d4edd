import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { Release } from './release.entity';

export type NewRelease = Omit<Release, 'steppedAt'>;

// Hand-written SQL: FOR NO KEY UPDATE SKIP LOCKED. Also sets the `lock_timeout` of the step, to save a round
// trip.
const LOCK_NEXT = `
  SELECT schedule.schedule_id AS "scheduleId", set_config('lock_timeout', $2, true)
  FROM task.releases AS release JOIN task.schedules AS schedule USING (schedule_id)
  WHERE schedule.schedule_id <> ALL ($1::uuid[])
  ORDER BY release.stepped_at
  LIMIT 1
  FOR NO KEY UPDATE OF schedule SKIP LOCKED`;

const ADVANCE = `
  UPDATE task.releases SET done_until = $2, remaining = greatest(remaining - $3, 0), stepped_at = clock_timestamp()
  WHERE schedule_id = $1`;

/**
 * Maximum wait of a step for a lock. A transaction that locks an instance for longer makes the step fail, and
 * delays the steps of other schedules by no more than this.
 */
const LOCK_WAIT_MS = 500;

/** Cost of finding the next facility, in index entries read. */
const FACILITY_COST = 100;

/** Result of a step over facilities with released instances. */
export interface FacilityStep {
  /** Facilities with more released instances than the given count. */
  readonly withMore: readonly number[];
  /** Facility after which the next step begins. Null after the last facility. */
  readonly last: number | null;
}

/** Numbers of unfinished releases and of the instances that they have still to cancel. */
export interface ReleaseBacklog {
  readonly schedules: number;
  readonly instances: number;
}

const BACKLOG = `
  SELECT count(*)::int AS schedules, coalesce(sum(remaining), 0)::float8 AS instances FROM task.releases`;

// A deleted released instance is not generated again: its instant is free already.
const DELETE_OLD = `
  WITH deleted AS (
    DELETE FROM task.released_instances WHERE task_instance_id = ANY (ARRAY(
      SELECT task_instance_id FROM task.released_instances
      WHERE cancelled_at < now() - $1 * interval '1 day'
      ORDER BY cancelled_at
      LIMIT $2))
    RETURNING 1)
  SELECT count(*)::int AS count FROM deleted`;

// Hand-written SQL: steps from facility to facility by an index. Reads at most $2 + 1 entries of each, and
// stops once about $3 entries were read. Finding a facility counts as FACILITY_COST entries.
const NEXT_FACILITIES = `
  WITH RECURSIVE walk (facility_id, held, read) AS (
    SELECT $1::bigint, 0::bigint, 0::bigint
    UNION ALL
    SELECT next.facility_id, counted.held, walk.read + counted.held + ${String(FACILITY_COST)}
    FROM walk
    CROSS JOIN LATERAL (
      SELECT facility_id FROM task.released_instances WHERE facility_id > walk.facility_id
      ORDER BY facility_id, cancelled_at, task_instance_id LIMIT 1) AS next
    CROSS JOIN LATERAL (
      SELECT count(*) AS held FROM (
        SELECT 1 FROM task.released_instances WHERE facility_id = next.facility_id
        ORDER BY facility_id, cancelled_at, task_instance_id LIMIT $2 + 1) AS few) AS counted
    WHERE walk.read < $3
  )
  SELECT facility_id::float8 AS "facilityId", held > $2 AS "hasMore", read >= $3 AS "isLast" FROM walk
  WHERE facility_id > $1 ORDER BY facility_id`;

const DELETE_SURPLUS = `
  WITH deleted AS (
    DELETE FROM task.released_instances WHERE task_instance_id = ANY (ARRAY(
      SELECT task_instance_id FROM task.released_instances
      WHERE facility_id = $1
      ORDER BY facility_id DESC, cancelled_at DESC, task_instance_id DESC
      OFFSET $2 LIMIT $3))
    RETURNING 1)
  SELECT count(*)::int AS count FROM deleted`;

/** Reads and writes of releases, and of the instances that they have cancelled. */
@Injectable()
export class ReleasesRepository {
  constructor(@InjectRepository(Release) private readonly releases: Repository<Release>) {}

  /**
   * Locks the schedule of the release with the oldest step that no other replica has locked. Null if there is
   * none.
   * @param exceptScheduleIds schedules whose steps have just failed
   */
  async lockNext(manager: EntityManager, exceptScheduleIds: readonly string[]): Promise<string | null> {
    const rows = await manager.query<{ scheduleId: string }[]>(LOCK_NEXT, [
      exceptScheduleIds,
      String(LOCK_WAIT_MS),
    ]);
    return rows[0]?.scheduleId ?? null;
  }

  /** Returns the release of a locked schedule, or null. */
  find(manager: EntityManager, scheduleId: string): Promise<Release | null> {
    return manager.findOneBy(Release, { scheduleId });
  }

  /** Stores the release of a locked schedule. Replaces an unfinished one. */
  async put(manager: EntityManager, release: NewRelease): Promise<void> {
    await manager.delete(Release, { scheduleId: release.scheduleId });
    await manager.insert(Release, release);
  }

  /** Stores the progress of a release after a step. */
  async advance(
    manager: EntityManager,
    scheduleId: string,
    { doneUntil, cancelled }: { doneUntil: Date; cancelled: number },
  ): Promise<void> {
    await manager.query(ADVANCE, [scheduleId, doneUntil, cancelled]);
  }

  async delete(manager: EntityManager, scheduleId: string): Promise<void> {
    await manager.delete(Release, { scheduleId });
  }

  async readBacklog(): Promise<ReleaseBacklog> {
    const rows = await this.releases.query<ReleaseBacklog[]>(BACKLOG);
    return rows[0] ?? { schedules: 0, instances: 0 };
  }

  /**
   * Deletes at most `limit` released instances that were cancelled more than `days` ago. Returns their
   * number.
   */
  async forgetOld(days: number, limit: number): Promise<number> {
    const rows = await this.releases.query<{ count: number }[]>(DELETE_OLD, [days, limit]);
    return rows[0]?.count ?? 0;
  }

  /**
   * Finds facilities with more than `count` released instances, in ascending order after `after`. Stops once
   * it has read about `entries` index entries.
   */
  async facilitiesWithMore(count: number, after: number, entries: number): Promise<FacilityStep> {
    const rows = await this.releases.query<{ facilityId: number; hasMore: boolean; isLast: boolean }[]>(
      NEXT_FACILITIES,
      [after, count, entries],
    );
    const last = rows.at(-1);
    return {
      withMore: rows.filter(({ hasMore }) => hasMore).map(({ facilityId }) => facilityId),
      last: last?.isLast === true ? last.facilityId : null,
    };
  }

  /**
   * Deletes at most `limit` of a facility's released instances, oldest first, but never the `kept` latest.
   * Returns their number.
   */
  async forgetSurplus(facilityId: number, kept: number, limit: number): Promise<number> {
    const rows = await this.releases.query<{ count: number }[]>(DELETE_SURPLUS, [facilityId, kept, limit]);
    return rows[0]?.count ?? 0;
  }
}
