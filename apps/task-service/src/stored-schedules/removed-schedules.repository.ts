import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Schedule } from './schedule.entity';

/** Position of a removed schedule, after which the next page begins. */
export type RemovedPosition = Pick<Schedule, 'scheduleId'> & { readonly removedAt: Date };

/** Result of examining a page of removed schedules. */
export interface RemovedPage {
  readonly purged: number;
  /** Position of the last schedule examined; null if no page follows. */
  readonly last: RemovedPosition | null;
}

// Hand-written SQL: a batch. The retention of these schedules begins now.
const NOTE_REMOVAL = `
  WITH noted AS (
    UPDATE task.schedules SET removed_at = now() WHERE schedule_id = ANY (ARRAY(
      SELECT schedule_id FROM task.schedules WHERE status = 'Removed' AND removed_at IS NULL
      LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED))
    RETURNING 1)
  SELECT count(*)::int AS count FROM noted`;

// Hand-written SQL: a page, with one or two index probes per row. A schedule is referenced by its instances,
// including released ones, which have their own retention, and by an unfinished release. The ORDER BY matches
// the index: otherwise, where all released instances belong to one schedule, each probe might read them all.
const PURGE = `
  WITH page AS MATERIALIZED (
    SELECT schedule_id, removed_at FROM task.schedules
    WHERE status = 'Removed' AND removed_at < now() - $1 * interval '1 day' AND (removed_at, schedule_id) > ($2::timestamptz, $3::uuid)
    ORDER BY removed_at, schedule_id
    LIMIT $4
  ), unused AS MATERIALIZED (
    SELECT schedule.schedule_id FROM page JOIN task.schedules AS schedule USING (schedule_id)
    WHERE (SELECT true FROM task.instances AS instance WHERE instance.schedule_id = page.schedule_id ORDER BY instance.due_at LIMIT 1) IS NULL
      AND (SELECT true FROM task.releases AS release WHERE release.schedule_id = page.schedule_id LIMIT 1) IS NULL
    FOR UPDATE OF schedule SKIP LOCKED
  ), purged AS (
    DELETE FROM task.schedules WHERE schedule_id = ANY (ARRAY(SELECT schedule_id FROM unused))
    RETURNING 1
  )
  SELECT schedule_id AS "scheduleId", removed_at AS "removedAt", (SELECT count(*)::int FROM page) AS read,
    (SELECT count(*)::int FROM purged) AS purged
  FROM page ORDER BY removed_at DESC, schedule_id DESC LIMIT 1`;

/** Deletes removed schedules that nothing refers to. */
@Injectable()
export class RemovedSchedulesRepository {
  constructor(@InjectRepository(Schedule) private readonly schedules: Repository<Schedule>) {}

  /** Sets `removed_at` of at most `limit` schedules that release 1.0.0 has removed. Returns their number. */
  async noteRemoval(limit: number): Promise<number> {
    const rows = await this.schedules.query<{ count: number }[]>(NOTE_REMOVAL, [limit]);
    return rows[0]?.count ?? 0;
  }

  /**
   * Examines at most `limit` schedules that were removed more than `days` ago, and deletes those that nothing
   * refers to.
   */
  async purge(days: number, after: RemovedPosition | null, limit: number): Promise<RemovedPage> {
    const { removedAt, scheduleId } = after ?? START;
    const rows = await this.schedules.query<(RemovedPosition & { read: number; purged: number })[]>(PURGE, [
      days,
      removedAt,
      scheduleId,
      limit,
    ]);
    const [page] = rows;
    if (page === undefined) return { purged: 0, last: null };
    return { purged: page.purged, last: page.read < limit ? null : page };
  }
}

/** Sorts before every schedule. */
const START = { removedAt: '-infinity', scheduleId: '00000000-0000-0000-0000-000000000000' };
