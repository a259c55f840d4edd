import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { Release } from './release.entity';

export type NewRelease = Omit<Release, 'steppedAt'>;

// Hand-written SQL: locked, and passing over those that another replica is at. The same round trip sets how
// long the step waits for any lock.
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

/** Whoever holds an instance for longer holds up its schedule, and delays the others by no more than this. */
const LOCK_WAIT_MS = 500;

/** Entries of an index that cost as much as finding the next facility. */
const FACILITY_COST = 100;

/** Facilities that were looked at. */
export interface FacilityStep {
  /** Those with more than was asked for. */
  readonly withMore: readonly number[];
  /** The next step begins behind it; null when there are no others. */
  readonly last: number | null;
}

/** How many changes are under way, and how many instances they have still to cancel. */
export interface ReleaseBacklog {
  readonly schedules: number;
  readonly instances: number;
}

const BACKLOG = `
  SELECT count(*)::int AS schedules, coalesce(sum(remaining), 0)::float8 AS instances FROM task.releases`;

// A released instance holds no instant: it is forgotten without anything being generated again.
const FORGET_OLD = `
  WITH deleted AS (
    DELETE FROM task.released_instances WHERE task_instance_id = ANY (ARRAY(
      SELECT task_instance_id FROM task.released_instances
      WHERE cancelled_at < now() - $1 * interval '1 day'
      ORDER BY cancelled_at
      LIMIT $2))
    RETURNING 1)
  SELECT count(*)::int AS count FROM deleted`;

// By hand: from facility to facility by their index, no more than $2 + 1 of each, and no further once $3
// entries were read. A facility itself costs a few pages.
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

const FORGET_SURPLUS = `
  WITH deleted AS (
    DELETE FROM task.released_instances WHERE task_instance_id = ANY (ARRAY(
      SELECT task_instance_id FROM task.released_instances
      WHERE facility_id = $1
      ORDER BY facility_id DESC, cancelled_at DESC, task_instance_id DESC
      OFFSET $2 LIMIT $3))
    RETURNING 1)
  SELECT count(*)::int AS count FROM deleted`;

/** Changes of schedules that are carried out in steps, and the instances that they released. */
@Injectable()
export class ReleasesRepository {
  constructor(@InjectRepository(Release) private readonly releases: Repository<Release>) {}

  /**
   * Locks the schedule of the change that waited longest for its next step; null when there is none that
   * nobody is at.
   * @param exceptScheduleIds whose steps failed just now
   */
  async lockNext(manager: EntityManager, exceptScheduleIds: readonly string[]): Promise<string | null> {
    const rows = await manager.query<{ scheduleId: string }[]>(LOCK_NEXT, [
      exceptScheduleIds,
      String(LOCK_WAIT_MS),
    ]);
    return rows[0]?.scheduleId ?? null;
  }

  /** Of a schedule that is locked. */
  find(manager: EntityManager, scheduleId: string): Promise<Release | null> {
    return manager.findOneBy(Release, { scheduleId });
  }

  /** Stores a change of a locked schedule, in the place of an earlier one. */
  async put(manager: EntityManager, release: NewRelease): Promise<void> {
    await manager.delete(Release, { scheduleId: release.scheduleId });
    await manager.insert(Release, release);
  }

  /** Notes a step. */
  async advance(
    manager: EntityManager,
    scheduleId: string,
    { doneUntil, cancelled }: { doneUntil: Date; cancelled: number },
  ): Promise<void> {
    await manager.query(ADVANCE, [scheduleId, doneUntil, cancelled]);
  }

  /** It is carried out. */
  async delete(manager: EntityManager, scheduleId: string): Promise<void> {
    await manager.delete(Release, { scheduleId });
  }

  async readBacklog(): Promise<ReleaseBacklog> {
    const rows = await this.releases.query<ReleaseBacklog[]>(BACKLOG);
    return rows[0] ?? { schedules: 0, instances: 0 };
  }

  /** Deletes at most `limit` released instances that were cancelled more than `days` ago; gives how many. */
  async forgetOld(days: number, limit: number): Promise<number> {
    const rows = await this.releases.query<{ count: number }[]>(FORGET_OLD, [days, limit]);
    return rows[0]?.count ?? 0;
  }

  /**
   * Looks for facilities with more than `count` released instances, in the order of their numbers behind
   * `after`; ends once it has read about `entries` of them.
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
   * Deletes at most `limit` of a facility's released instances, none of the `kept` latest; gives how many.
   */
  async forgetSurplus(facilityId: number, kept: number, limit: number): Promise<number> {
    const rows = await this.releases.query<{ count: number }[]>(FORGET_SURPLUS, [facilityId, kept, limit]);
    return rows[0]?.count ?? 0;
  }
}
