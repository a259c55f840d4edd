import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { allOrEach, inTransaction, type RefusedItem } from '@platform/database';
import { DataSource } from 'typeorm';
import type { TriggerPlan } from './triggers.repository';

/** A trigger's next fire and the expected one. */
export interface Misplacement {
  readonly facilityId: number;
  readonly nextFireAt: Date;
  readonly expectedAt: Date;
}

/** A trigger and the time at which it was read. */
type PositionedTrigger = TriggerPlan & { readonly now: Date };

/** A page of triggers by facility. */
export interface TriggerPage {
  readonly rows: readonly PositionedTrigger[];
  /** Facility of the last trigger examined; null at the end. */
  readonly last: number | null;
}

type TriggerRow = PositionedTrigger & { readonly last: number | null };

const TRIGGERS_PER_PAGE = 10_000;
/** Triggers whose next fire is sooner than this are not checked, because that fire corrects them. */
const TOLERANCE = '25 hours';

// Hand-written SQL: reads a page of the table and returns the few suspicious rows.
const TRIGGERS = `
  WITH page AS MATERIALIZED (
    SELECT * FROM task.triggers WHERE facility_id > $1 ORDER BY facility_id LIMIT ${String(TRIGGERS_PER_PAGE)}
  )
  SELECT (SELECT max(facility_id) FROM page)::float8 AS last, now() AS now, facility_id::float8 AS "facilityId", schedule,
    time_zone AS "timeZone", jitter_seconds AS "jitterSeconds", next_fire_at AS "nextFireAt", state
  FROM (SELECT) AS always
  LEFT JOIN page ON state <> 'ERROR' AND next_fire_at > now() + interval '${TOLERANCE}'
  ORDER BY facility_id`;

// Hand-written SQL: updates a batch. Skips triggers that another transaction has locked or changed. Clears a
// previous fire that lies in the future, because a wrong clock dated it.
const MOVE_TRIGGERS = `
  WITH free AS MATERIALIZED (
    SELECT facility_id FROM task.triggers WHERE facility_id = ANY ($1) ORDER BY facility_id FOR UPDATE SKIP LOCKED
  )
  UPDATE task.triggers AS trigger SET next_fire_at = plan.expected_at,
    previous_fire_at = CASE WHEN previous_fire_at <= now() THEN previous_fire_at END
  FROM unnest($1::bigint[], $2::timestamptz[], $3::timestamptz[]) AS plan (facility_id, next_fire_at, expected_at)
    JOIN free USING (facility_id)
  WHERE trigger.facility_id = ANY ($1) AND trigger.facility_id = plan.facility_id AND trigger.next_fire_at = plan.next_fire_at`;

/** Reads and corrects the next fires of triggers, for reconciliation. */
@Injectable()
export class TriggerPositionsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Reads the next 10,000 triggers. Returns those whose next fire is more than a day ahead. */
  async nextPage(after: number): Promise<TriggerPage> {
    const rows = await this.dataSource.query<TriggerRow[]>(TRIGGERS, [after]);
    // The query returns at least one row, which carries `last` even if no trigger is suspicious.
    return { rows: rows.filter((row) => row.facilityId !== null), last: rows[0]?.last ?? null };
  }

  /** Sets the next fire of triggers. Returns those that PostgreSQL rejected. */
  move(misplaced: readonly Misplacement[]): Promise<RefusedItem<Misplacement>[]> {
    return inTransaction(this.dataSource, 'READ COMMITTED', (manager) =>
      allOrEach(manager, misplaced, (savepoint, some) =>
        savepoint.query(MOVE_TRIGGERS, [
          some.map(({ facilityId }) => facilityId),
          some.map(({ nextFireAt }) => nextFireAt),
          some.map(({ expectedAt }) => expectedAt),
        ]),
      ),
    );
  }
}
