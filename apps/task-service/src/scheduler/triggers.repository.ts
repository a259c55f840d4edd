import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { allOrEach, inTransaction, inTwoRoundTrips, isServerFault, queryPrepared } from '@platform/database';
import { traceHeaders } from '@platform/service-defaults';
import { MINUTE_MS } from '@platform/time';
import { Any, LessThan, Repository } from 'typeorm';
import type { DataSource, EntityManager } from 'typeorm';
import type { FacilityScope } from '../access/caller-scope.service';
import { type DecidedFire, type Decisions, type Fired, recordStatement } from './record-fires';
import { TriggerFire } from './trigger-fire.entity';
import { JOB_NAME, TRIGGER_GROUP, Trigger, triggerName, type TriggerState } from './trigger.entity';

/** Triggers per batch. Source: task messaging spec, Scheduler rules 3. */
export const BATCH_SIZE = 10;

/** A due trigger that is locked by the current transaction. */
export interface DueTrigger extends Pick<
  Trigger,
  'facilityId' | 'schedule' | 'timeZone' | 'jitterSeconds' | 'originTrace'
> {
  readonly dueAt: Date;
  /** Database time of the transaction, the only clock that decides. */
  readonly now: Date;
}

/** Settings and next fire of a trigger. */
export interface TriggerPlan extends Pick<
  Trigger,
  'facilityId' | 'schedule' | 'timeZone' | 'nextFireAt' | 'jitterSeconds'
> {
  /** Default: WAITING. */
  readonly state?: TriggerState;
}

/** Decides what a batch of due triggers does. */
export type Decide = (due: readonly DueTrigger[]) => Decisions;

/** Backlog of the scheduler. */
export interface TriggerBacklog {
  /** Seconds since the longest overdue trigger was due, by the database's clock; 0 if none is due. */
  readonly lagSeconds: number;
  /** Triggers that cannot be evaluated, counted up to 10,000. */
  readonly failed: number;
}

/** The next due trigger. */
export interface NextDue {
  /**
   * Milliseconds until it is due, by the database's clock; negative if it is overdue, null if there is none.
   */
  readonly delayMs: number | null;
  /** Position before which no trigger waits. */
  readonly from: DuePosition;
}

/** A position in the order in which triggers fire; never in the future. */
export interface DuePosition {
  readonly at: Date;
  readonly facilityId: number;
}

export interface TriggerListing {
  readonly scope: FacilityScope;
  /** Facility of the previous page's last row; empty for the first page. */
  readonly after: readonly unknown[];
  readonly limit: number;
}

// Hand-written SQL: locks rows on the hot path. now() can be an index condition; clock_timestamp() would make
// it scan every waiting trigger. The LIMIT is part of the text: for a parameter, a generic plan expects a
// tenth of the table. $1 and $2 skip the index entries of earlier fires, which remain while a backup's
// snapshot is open: a batch that reads a million of them takes 350 ms instead of 0.05 ms.
export const ACQUIRE_DUE = {
  name: 'acquire-due-triggers',
  text: `
  SELECT facility_id::float8 AS "facilityId", schedule, time_zone AS "timeZone", origin_trace AS "originTrace",
    jitter_seconds AS "jitterSeconds", next_fire_at AS "dueAt", now() AS now
  FROM task.triggers
  WHERE state = 'WAITING' AND next_fire_at <= now() AND (next_fire_at, facility_id) >= ($1::timestamptz, $2::bigint)
  ORDER BY next_fire_at, facility_id
  LIMIT ${String(BATCH_SIZE)}
  FOR UPDATE SKIP LOCKED`,
};

// Hand-written SQL: a batch, ordered by facility like all statements that wait for locks of several triggers,
// which prevents deadlocks.
const INSERT_MISSING = `
  INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at, jitter_seconds,
    state, error, origin_trace)
  SELECT facility_id, name, $8, $9, schedule, time_zone, next_fire_at, jitter_seconds,
    coalesce(state, 'WAITING'), CASE state WHEN 'ERROR' THEN $11 END, $10
  FROM unnest($1::bigint[], $2::text[], $3::text[], $4::timestamptz[], $5::integer[], $6::text[], $7::text[])
    AS plan (facility_id, schedule, time_zone, next_fire_at, jitter_seconds, state, name)
  ORDER BY facility_id
  ON CONFLICT DO NOTHING
  RETURNING facility_id::float8 AS "facilityId"`;

// Hand-written SQL: a batch. Clears a previous fire that lies in the future, because a wrong clock dated it.
const RESCHEDULE = `
  UPDATE task.triggers AS trigger
  SET schedule = plan.schedule, time_zone = plan.time_zone, next_fire_at = plan.next_fire_at,
    jitter_seconds = plan.jitter_seconds, state = coalesce(plan.state, 'WAITING'), origin_trace = $7, error = NULL,
    previous_fire_at = CASE WHEN previous_fire_at <= now() THEN previous_fire_at END
  FROM unnest($1::bigint[], $2::text[], $3::text[], $4::timestamptz[], $5::integer[], $6::text[])
    AS plan (facility_id, schedule, time_zone, next_fire_at, jitter_seconds, state)
  WHERE trigger.facility_id = ANY ($1) AND trigger.facility_id = plan.facility_id`;

// Hand-written SQL: prepared, because every generation runs it; also returns the database time. While no
// business unit holds the facility active, `activeSince` is now, so nothing due earlier is generated. An
// activation in the future was dated by a wrong clock and also counts as now.
const NEXT_FIRE = {
  name: 'next-fire',
  text: `
  SELECT now() AS now, trigger.facility_id::float8 AS "facilityId", trigger.schedule, trigger.time_zone AS "timeZone",
    trigger.jitter_seconds AS "jitterSeconds", trigger.next_fire_at AS "nextFireAt", trigger.state,
    CASE WHEN activity.inactive_since IS NOT NULL OR activity.active_since > now() THEN now() ELSE activity.active_since END AS "activeSince"
  FROM (SELECT $1::bigint AS facility) AS asked
  LEFT JOIN task.triggers AS trigger ON trigger.facility_id = asked.facility AND trigger.state <> 'ERROR'
  LEFT JOIN task.facility_activity AS activity ON activity.facility_id = asked.facility`,
};

// Hand-written SQL: every replica polls with it.
const NEXT_DUE = `
  SELECT (extract(epoch FROM next.next_fire_at - now()) * 1000)::float8 AS "delayMs",
    CASE WHEN next.next_fire_at <= now() THEN next.next_fire_at ELSE date_trunc('milliseconds', now()) END AS "fromAt",
    CASE WHEN next.next_fire_at <= now() THEN next.facility_id ELSE 0 END::float8 AS "fromFacilityId"
  FROM (SELECT) AS always LEFT JOIN LATERAL (
    SELECT next_fire_at, facility_id FROM task.triggers
    WHERE state = 'WAITING' AND (next_fire_at, facility_id) >= ($1::timestamptz, $2::bigint)
    ORDER BY next_fire_at, facility_id LIMIT 1) AS next ON true`;

/** Statement timeout of a step of `keepMonths`, which may scan the default partition without locking it. */
const MONTH_STEP_LIMIT_MS = 10 * MINUTE_MS;
/** Maximum steps per run of `keepMonths`. */
const MAX_MONTH_STEPS = 1_000;
/** Maximum fires that a step moves into their month's partition. */
const MOVED_FIRES = 10_000;

const COUNT_LIMIT = 10_000;
const BACKLOG = `
  SELECT greatest(coalesce((SELECT extract(epoch FROM now() - min(next_fire_at)) FROM task.triggers
      WHERE state = 'WAITING'), 0), 0)::float8 AS "lagSeconds",
    (SELECT count(*)::int FROM (SELECT 1 FROM task.triggers WHERE state = 'ERROR' LIMIT $1) AS counted) AS failed`;

// Hand-written SQL: a batch from the default partition. A fire prevents its occurrence from firing again, so
// the one at a trigger's position is kept regardless of its age: otherwise a trigger that was paused or in
// error for longer than the retention would fire that occurrence a second time. The rows are found by index
// and deleted by ctid, because with a join the planner may scan the whole table for each batch. Fires are
// never updated, so their ctid does not change.
const DELETE_OLD_FIRES = `
  WITH deleted AS (
    DELETE FROM task.trigger_fires WHERE ctid = ANY (ARRAY(
      SELECT fire.ctid FROM task.trigger_fires AS fire
      WHERE fire.fired_at < now() - $1 * interval '1 day' AND NOT EXISTS (
        SELECT 1 FROM task.triggers AS trigger
        WHERE trigger.facility_id = fire.facility_id AND trigger.next_fire_at <= fire.scheduled_at)
      ORDER BY fire.fired_at LIMIT $2))
    RETURNING 1
  ) SELECT count(*)::int AS count FROM deleted`;

/** Error of a trigger that is restored with settings that cannot be evaluated any more. */
const NOT_EVALUATED = 'its stored settings cannot be evaluated';

/**
 * Maximum attempts to create or lock triggers. An attempt fails only for a trigger that exists at the insert
 * but is deleted by another transaction before it is locked.
 */
const MAX_ATTEMPTS = 5;

/**
 * Reads and writes of triggers and their fires. `record-fires` has the SQL that stores fires. Other
 * repositories access `task.triggers` in their own statements.
 */
@Injectable()
export class TriggersRepository {
  constructor(@InjectRepository(Trigger) private readonly triggers: Repository<Trigger>) {}

  /** Returns the triggers of the facilities in scope, ordered by facility, after the given one. */
  list({ scope, after: [facilityId], limit }: TriggerListing): Promise<Trigger[]> {
    const page = this.triggers.createQueryBuilder('trigger').orderBy('trigger.facilityId').limit(limit);
    if (scope !== 'all') page.andWhere('trigger.facilityId = ANY (:scope::bigint[])', { scope });
    if (facilityId !== undefined) page.andWhere('trigger.facilityId > :facilityId', { facilityId });
    return page.getMany();
  }

  /** Returns the fires of a facility, latest first, before the given one. */
  listFires({
    facilityId,
    after: [scheduledAt],
    limit,
  }: {
    facilityId: number;
    after: readonly unknown[];
    limit: number;
  }): Promise<TriggerFire[]> {
    const before =
      scheduledAt === undefined ? {} : { scheduledAt: LessThan(new Date(scheduledAt as string)) };
    return this.triggers.manager.find(TriggerFire, {
      where: { facilityId, ...before },
      order: { scheduledAt: 'DESC' },
      take: limit,
    });
  }

  /** Locks the facility's trigger until the transaction ends, and returns it. Waits for a running fire. */
  findAndLock(manager: EntityManager, facilityId: number): Promise<Trigger | null> {
    return manager.findOne(Trigger, { where: { facilityId }, lock: { mode: 'pessimistic_write' } });
  }

  /**
   * Creates the missing triggers, and locks and returns the existing ones. Needs READ COMMITTED, so that a
   * retry sees triggers that were created in between.
   */
  async insertOrLock(
    manager: EntityManager,
    plans: readonly TriggerPlan[],
  ): Promise<{ created: TriggerPlan[]; found: Trigger[] }> {
    const created: TriggerPlan[] = [];
    const found: Trigger[] = [];
    let remaining = plans;
    for (let attempt = 1; remaining.length > 0 && attempt <= MAX_ATTEMPTS; attempt += 1) {
      const names = remaining.map(({ facilityId }) => triggerName(facilityId));
      const rows: { facilityId: number }[] = await manager.query(INSERT_MISSING, [
        ...planColumns(remaining),
        names,
        TRIGGER_GROUP,
        JOB_NAME,
        originTrace(),
        NOT_EVALUATED,
      ]);
      const inserted = new Set(rows.map(({ facilityId }) => facilityId));
      created.push(...remaining.filter(({ facilityId }) => inserted.has(facilityId)));
      remaining = remaining.filter(({ facilityId }) => !inserted.has(facilityId));
      const locked = remaining.length === 0 ? [] : await this.lockAll(manager, remaining);
      const lockedIds = new Set(locked.map(({ facilityId }) => facilityId));
      found.push(...locked);
      remaining = remaining.filter(({ facilityId }) => !lockedIds.has(facilityId));
    }
    if (remaining.length > 0) throw new Error('a trigger was neither created nor found');
    return { created, found };
  }

  private lockAll(manager: EntityManager, plans: readonly TriggerPlan[]): Promise<Trigger[]> {
    return manager.find(Trigger, {
      where: { facilityId: Any(plans.map(({ facilityId }) => facilityId)) },
      order: { facilityId: 'ASC' },
      lock: { mode: 'pessimistic_write' },
    });
  }

  /** Changes the settings of locked triggers. Their state becomes the plan's, by default WAITING. */
  async reschedule(manager: EntityManager, plans: readonly TriggerPlan[]): Promise<void> {
    if (plans.length > 0) await manager.query(RESCHEDULE, [...planColumns(plans), originTrace()]);
  }

  async setState(manager: EntityManager, trigger: Trigger, state: 'PAUSED' | 'WAITING'): Promise<Trigger> {
    await manager.update(Trigger, { facilityId: trigger.facilityId }, { state });
    return { ...trigger, state };
  }

  /** Deletes the facility's trigger. Returns false if it had none. Waits for a running fire. */
  async delete(manager: EntityManager, facilityId: number): Promise<boolean> {
    const { affected } = await manager.delete(Trigger, { facilityId });
    return affected === 1;
  }

  /**
   * Returns the next due trigger.
   * @param from position before which no trigger waits; null if unknown
   */
  async findNextDue(
    database: Pick<EntityManager, 'query'>,
    from: DuePosition | null = null,
  ): Promise<NextDue> {
    const rows = await database.query<NextDueRow[]>(NEXT_DUE, positionParameters(from));
    if (!rows[0]) throw new Error('the database returned no time');
    const { delayMs, fromAt, fromFacilityId } = rows[0];
    return { delayMs, from: { at: fromAt, facilityId: fromFacilityId } };
  }

  /**
   * Returns the milliseconds, by the database's clock, until the next trigger is due; negative if one is
   * overdue, null if there is none.
   */
  async findNextDueDelayMs(database: Pick<EntityManager, 'query'>): Promise<number | null> {
    return (await this.findNextDue(database)).delayMs;
  }

  /**
   * Fires a batch of due triggers in one transaction. Locks them, longest due first, skipping those that
   * another replica is firing. Then carries out what `decide` returns: records the fires, stores their
   * messages and advances their triggers. A trigger that cannot be evaluated goes to ERROR until it is
   * scheduled again, so that it does not block the others. `decide` is called again if PostgreSQL requires a
   * retry. Messages of occurrences that had fired before are not stored.
   * @param from position before which no trigger waits; null if unknown
   */
  async fireDue(dataSource: DataSource, decide: Decide, from: DuePosition | null = null): Promise<Fired> {
    let { fires, failed }: Decisions = { fires: [], failed: [] };
    const acquire = { ...ACQUIRE_DUE, values: positionParameters(from) };
    const rows = await inTwoRoundTrips<DueTrigger, { messageId: string }>(dataSource, acquire, (due) => {
      ({ fires, failed } = decide(due));
      return due.length === 0 ? null : recordStatement({ fires, failed });
    });
    return { acquired: fires.length + failed.length, recorded: recordedOf(fires, rows) };
  }

  /**
   * Like `fireDue`, for a batch that PostgreSQL has rejected: fires each trigger separately. One that is
   * rejected alone goes to ERROR.
   * @throws the server fault that rejected all of them: no trigger causes it, and all stay due
   */
  fireEach(dataSource: DataSource, decide: Decide, from: DuePosition | null): Promise<Fired> {
    return inTransaction(dataSource, 'READ COMMITTED', async (manager) => {
      const due = await manager.query<DueTrigger[]>(ACQUIRE_DUE.text, positionParameters(from));
      const recorded: DecidedFire[] = [];
      const refused = await allOrEach(manager, due, async (savepoint, triggers) => {
        recorded.push(...(await this.record(savepoint, decide(triggers))));
      });
      const [first] = refused;
      if (first !== undefined && refused.length === due.length && isServerFault(first.error))
        throw first.error;
      const failed = refused.map(({ item: { facilityId }, error }) => ({ facilityId, error: String(error) }));
      const stuck = await allOrEach(manager, failed, (savepoint, each) =>
        this.record(savepoint, { fires: [], failed: [...each] }),
      );
      return { acquired: due.length - stuck.length, recorded };
    });
  }

  private async record(manager: EntityManager, decisions: Decisions): Promise<DecidedFire[]> {
    const { text, values } = recordStatement(decisions);
    return recordedOf(decisions.fires, await manager.query<{ messageId: string }[]>(text, values));
  }

  /**
   * Creates the partitions of the next months and drops those that ended more than `days` ago, in steps with
   * one transaction each. Returns the number dropped. One replica at a time runs it; the next run continues
   * where this one stops.
   */
  async keepMonths(days: number, isStopping = (): boolean => false): Promise<number> {
    let dropped = 0;
    for (let step = 0; step < MAX_MONTH_STEPS && !isStopping(); step += 1) {
      const outcome = await this.keepMonthsStep(days);
      if (outcome === 'done') break;
      if (outcome === 'dropped') dropped += 1;
    }
    return dropped;
  }

  private async keepMonthsStep(days: number): Promise<'again' | 'dropped' | 'done'> {
    return this.triggers.manager.transaction(async (manager) => {
      await manager.query(`SELECT set_config('statement_timeout', $1, true)`, [String(MONTH_STEP_LIMIT_MS)]);
      const rows = await manager.query<{ step: 'again' | 'dropped' | 'done' }[]>(
        'SELECT task.keep_fires_step($1, $2, true) AS step',
        [days, MOVED_FIRES],
      );
      return rows[0]?.step ?? 'done';
    });
  }

  /**
   * Deletes at most `limit` fires older than `days` from the default partition, oldest first. Returns their
   * number.
   */
  async deleteOldFires(days: number, limit: number): Promise<number> {
    const rows = await this.triggers.query<{ count: number }[]>(DELETE_OLD_FIRES, [days, limit]);
    return rows[0]?.count ?? 0;
  }

  async readBacklog(): Promise<TriggerBacklog> {
    const rows = await this.triggers.query<TriggerBacklog[]>(BACKLOG, [COUNT_LIMIT]);
    return rows[0] ?? { lagSeconds: 0, failed: 0 };
  }

  /**
   * Returns the database time, the facility's next fire, and `activeSince`. `fire` is null if the facility
   * has no trigger that fires. Occurrences up to `activeSince` are not generated, because no business unit
   * held the facility active; null if its activity is not known.
   */
  async findNextFire(
    manager: EntityManager,
    facilityId: number,
  ): Promise<{ now: Date; fire: TriggerPlan | null; activeSince: Date | null }> {
    const rows = await queryPrepared<NextFire>(manager, NEXT_FIRE, [facilityId]);
    const [row] = rows;
    if (!row) throw new Error('the database returned no time');
    return { now: row.now, fire: isFire(row) ? row : null, activeSince: row.activeSince };
  }

  /** Returns the database time of this transaction. Replicas decide by it, never by their own clocks. */
  async databaseNow(manager: EntityManager): Promise<Date> {
    const rows = await manager.query<{ now: Date }[]>('SELECT now() AS now');
    if (!rows[0]) throw new Error('the database returned no time');
    return rows[0].now;
  }
}

type NextFire = { now: Date; activeSince: Date | null } & (TriggerPlan | { facilityId: null });

function isFire(row: NextFire): row is NextFire & TriggerPlan {
  return row.facilityId !== null;
}

function recordedOf(fires: readonly DecidedFire[], rows: readonly { messageId: string }[]): DecidedFire[] {
  const recorded = new Set(rows.map(({ messageId }) => messageId));
  return fires.filter(({ message }) => recorded.has(message.messageId));
}

interface NextDueRow {
  readonly delayMs: number | null;
  readonly fromAt: Date;
  readonly fromFacilityId: number;
}

function positionParameters(from: DuePosition | null): [Date | string, number] {
  return from === null ? ['-infinity', 0] : [from.at, from.facilityId];
}

/** Returns the trace of the current change of a trigger. */
function originTrace(): string | null {
  return traceHeaders().traceparent ?? null;
}

function planColumns(plans: readonly TriggerPlan[]): unknown[][] {
  const column = <T>(pick: (plan: TriggerPlan) => T): T[] => plans.map(pick);
  return [
    column((plan) => plan.facilityId),
    column((plan) => plan.schedule),
    column((plan) => plan.timeZone),
    column((plan) => plan.nextFireAt),
    column((plan) => plan.jitterSeconds),
    column((plan) => plan.state),
  ];
}
