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

/** Numbers of unfinished releases and of the instances that they have still to cancel. */
export interface ReleaseBacklog {
  readonly schedules: number;
  readonly instances: number;
}

const BACKLOG = `
  SELECT count(*)::int AS schedules, coalesce(sum(remaining), 0)::float8 AS instances FROM task.releases`;

/** Every statement on `task.releases`. */
@Injectable()
export class ReleasesRepository {
  constructor(@InjectRepository(Release) private readonly releases: Repository<Release>) {}

  /**
   * Locks the schedule whose release has the longest time since its last step, skipping those that other
   * replicas have locked. Returns its id; null if no schedule can be locked.
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
}
