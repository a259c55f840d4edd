import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { TaskInstance } from './instance.entity';

/** Cost of finding the next facility, in index entries read. */
const FACILITY_COST = 100;

/** Result of a step over facilities with released instances. */
export interface FacilityStep {
  /** Facilities with more released instances than the given count. */
  readonly withMore: readonly number[];
  /** Facility after which the next step begins. Null after the last facility. */
  readonly last: number | null;
}

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

// Hand-written SQL: steps from facility to facility by an index. Reads at most $2 + 1 entries of each
// facility, and stops once it has read about $3 entries. Finding a facility counts as FACILITY_COST entries.
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

/** Retention of the instances that releases have cancelled. */
@Injectable()
export class ReleasedInstancesRepository {
  constructor(@InjectRepository(TaskInstance) private readonly instances: Repository<TaskInstance>) {}

  /**
   * Deletes at most `limit` released instances that were cancelled more than `days` ago. Returns their
   * number.
   */
  async purgeOld(days: number, limit: number): Promise<number> {
    const rows = await this.instances.query<{ count: number }[]>(DELETE_OLD, [days, limit]);
    return rows[0]?.count ?? 0;
  }

  /**
   * Finds facilities with more than `count` released instances, in ascending order after `after`. Stops once
   * it has read about `entries` index entries.
   */
  async facilitiesWithMore(count: number, after: number, entries: number): Promise<FacilityStep> {
    const rows = await this.instances.query<{ facilityId: number; hasMore: boolean; isLast: boolean }[]>(
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
  async purgeSurplus(facilityId: number, kept: number, limit: number): Promise<number> {
    const rows = await this.instances.query<{ count: number }[]>(DELETE_SURPLUS, [facilityId, kept, limit]);
    return rows[0]?.count ?? 0;
  }
}
