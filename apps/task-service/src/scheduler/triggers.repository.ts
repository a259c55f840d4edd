import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { inParts, inTransaction, inTwoRoundTrips, isServerFault, queryPrepared } from '@platform/database';
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

/** A trigger that only this transaction may fire. */
export interface DueTrigger extends Pick<
  Trigger,
  'facilityId' | 'schedule' | 'timeZone' | 'jitterSeconds' | 'originTrace'
> {
  readonly dueAt: Date;
  /** The database's time of the transaction: the only clock that decides. */
  readonly now: Date;
}

/** When a trigger fires. */
export interface TriggerPlan extends Pick<
  Trigger,
  'facilityId' | 'schedule' | 'timeZone' | 'nextFireAt' | 'jitterSeconds'
> {
  /** WAITING unless given. */
  readonly state?: TriggerState;
}

/** What a batch of due triggers does. */
export type Decide = (due: readonly DueTrigger[]) => Decisions;

/** How the scheduler's triggers stand. */
export interface TriggerBacklog {
  /** How long the trigger has been due that waits longest, by the database's clock; 0 when none is due. */
  readonly lagSeconds: number;
  /** Triggers that cannot be evaluated, counted up to 10,000. */
  readonly failed: number;
}

/** When the next trigger is due. */
export interface NextDue {
  /** Milliseconds until then by the database's clock; negative when it is overdue, null without any. */
  readonly delayMs: number | null;
  /** No trigger that waits comes before it. */
  readonly from: DuePosition;
}

/** A place in the order in which triggers fire; not after now. */
export interface DuePosition {
  readonly at: Date;
  readonly facilityId: number;
}

export interface TriggerListing {
  readonly scope: FacilityScope;
  /** Facility of the last row of the page before; empty for the first page. */
  readonly after: readonly unknown[];
  readonly limit: number;
}

// Hand-written SQL: locked, and hot. now() is an index condition; clock_timestamp() would scan every waiting
// trigger. The limit is part of the text: a plan for any limit would be one for a tenth of the table. $1 and
// $2 pass over what fired already: while a backup's snapshot is open its index entries stay, and a batch that
// reads a million of them takes 350 ms instead of 0.05 ms.
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

// Hand-written SQL: in a batch. In order, as everybody locks triggers who locks several and waits.
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

// Hand-written SQL: in a batch. A fire dated ahead of now is from a clock that was wrong.
const RESCHEDULE = `
  UPDATE task.triggers AS trigger
  SET schedule = plan.schedule, time_zone = plan.time_zone, next_fire_at = plan.next_fire_at,
    jitter_seconds = plan.jitter_seconds, state = coalesce(plan.state, 'WAITING'), origin_trace = $7, error = NULL,
    previous_fire_at = CASE WHEN previous_fire_at <= now() THEN previous_fire_at END
  FROM unnest($1::bigint[], $2::text[], $3::text[], $4::timestamptz[], $5::integer[], $6::text[])
    AS plan (facility_id, schedule, time_zone, next_fire_at, jitter_seconds, state)
  WHERE trigger.facility_id = ANY ($1) AND trigger.facility_id = plan.facility_id`;

// Hand-written SQL: the time comes with it. Every generation asks. While no business unit holds the facility
// active, nothing due until now counts. An activation dated ahead of now is from a clock that was wrong.
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

// Hand-written SQL: every replica asks again and again.
const NEXT_DUE = `
  SELECT (extract(epoch FROM next.next_fire_at - now()) * 1000)::float8 AS "delayMs",
    CASE WHEN next.next_fire_at <= now() THEN next.next_fire_at ELSE date_trunc('milliseconds', now()) END AS "fromAt",
    CASE WHEN next.next_fire_at <= now() THEN next.facility_id ELSE 0 END::float8 AS "fromFacilityId"
  FROM (SELECT) AS always LEFT JOIN LATERAL (
    SELECT next_fire_at, facility_id FROM task.triggers
    WHERE state = 'WAITING' AND (next_fire_at, facility_id) >= ($1::timestamptz, $2::bigint)
    ORDER BY next_fire_at, facility_id LIMIT 1) AS next ON true`;

/** A step may read the default partition, which it does not lock meanwhile. */
const MONTH_STEP_LIMIT_MS = 10 * MINUTE_MS;
const MAX_MONTH_STEPS = 1_000;
/** Fires that a step moves into their month. */
const MOVED_FIRES = 10_000;

const COUNT_LIMIT = 10_000;
const BACKLOG = `
  SELECT greatest(coalesce((SELECT extract(epoch FROM now() - min(next_fire_at)) FROM task.triggers
      WHERE state = 'WAITING'), 0), 0)::float8 AS "lagSeconds",
    (SELECT count(*)::int FROM (SELECT 1 FROM task.triggers WHERE state = 'ERROR' LIMIT $1) AS counted) AS failed`;

// Hand-written SQL: in batches, from the partition that is no month. A fire is what keeps its occurrence from
// firing again, so the one that a trigger stands on stays whatever its age: a trigger paused or in error for
// longer than the retention must not fire that occurrence a second time. Found by index and deleted where
// they were found; joined, the planner may rather read the whole table for each batch. Fires are never
// updated, so a row stays where it is.
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

/** Why a trigger is in ERROR that comes back with settings which cannot be evaluated any more. */
const NOT_EVALUATED = 'its remembered settings cannot be evaluated';

/** A trigger that is there and then gone again was deleted in between; nobody does that over and over. */
const MAX_LOOKS = 5;

/** Triggers and their fires. `record-fires` has the SQL that stores fires. Other repositories have statements
 *  of their own on `task.triggers`. */
@Injectable()
export class TriggersRepository {
  constructor(@InjectRepository(Trigger) private readonly triggers: Repository<Trigger>) {}

  /** Triggers of the facilities in scope, by facility, after the given one. */
  list({ scope, after: [facilityId], limit }: TriggerListing): Promise<Trigger[]> {
    const page = this.triggers.createQueryBuilder('trigger').orderBy('trigger.facilityId').limit(limit);
    if (scope !== 'all') page.andWhere('trigger.facilityId = ANY (:scope::bigint[])', { scope });
    if (facilityId !== undefined) page.andWhere('trigger.facilityId > :facilityId', { facilityId });
    return page.getMany();
  }

  /** Fires of a facility, latest first, before the given one. */
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

  /**
   * Reads the facility's trigger and keeps everybody else from changing it until the transaction ends. Waits
   * for a fire under way.
   */
  findAndLock(manager: EntityManager, facilityId: number): Promise<Trigger | null> {
    return manager.findOne(Trigger, { where: { facilityId }, lock: { mode: 'pessimistic_write' } });
  }

  /**
   * Creates the triggers that the facilities lack, and locks those that they have and gives them as they are.
   * Needs READ COMMITTED: it looks again at what came in between.
   */
  async insertOrLock(
    manager: EntityManager,
    plans: readonly TriggerPlan[],
  ): Promise<{ created: TriggerPlan[]; found: Trigger[] }> {
    const created: TriggerPlan[] = [];
    const found: Trigger[] = [];
    let left = plans;
    for (let look = 1; left.length > 0 && look <= MAX_LOOKS; look += 1) {
      const names = left.map(({ facilityId }) => triggerName(facilityId));
      const rows: { facilityId: number }[] = await manager.query(INSERT_MISSING, [
        ...planColumns(left),
        names,
        TRIGGER_GROUP,
        JOB_NAME,
        originTrace(),
        NOT_EVALUATED,
      ]);
      const inserted = new Set(rows.map(({ facilityId }) => facilityId));
      created.push(...left.filter(({ facilityId }) => inserted.has(facilityId)));
      left = left.filter(({ facilityId }) => !inserted.has(facilityId));
      const locked = left.length === 0 ? [] : await this.lockAll(manager, left);
      const lockedIds = new Set(locked.map(({ facilityId }) => facilityId));
      found.push(...locked);
      left = left.filter(({ facilityId }) => !lockedIds.has(facilityId));
    }
    if (left.length > 0) throw new Error('a trigger was neither created nor found');
    return { created, found };
  }

  private lockAll(manager: EntityManager, plans: readonly TriggerPlan[]): Promise<Trigger[]> {
    return manager.find(Trigger, {
      where: { facilityId: Any(plans.map(({ facilityId }) => facilityId)) },
      order: { facilityId: 'ASC' },
      lock: { mode: 'pessimistic_write' },
    });
  }

  /** Gives locked triggers other settings, and another state if the plan says so. */
  async reschedule(manager: EntityManager, plans: readonly TriggerPlan[]): Promise<void> {
    if (plans.length > 0) await manager.query(RESCHEDULE, [...planColumns(plans), originTrace()]);
  }

  async setState(manager: EntityManager, trigger: Trigger, state: 'PAUSED' | 'WAITING'): Promise<Trigger> {
    await manager.update(Trigger, { facilityId: trigger.facilityId }, { state });
    return { ...trigger, state };
  }

  /** Removes the facility's trigger; false when it had none. Waits for a fire under way. */
  async delete(manager: EntityManager, facilityId: number): Promise<boolean> {
    const { affected } = await manager.delete(Trigger, { facilityId });
    return affected === 1;
  }

  /**
   * When the next trigger is due.
   * @param from no trigger that waits comes before it; null: nothing is known
   */
  async findNextDue(
    database: Pick<EntityManager, 'query'>,
    from: DuePosition | null = null,
  ): Promise<NextDue> {
    const rows = await database.query<NextDueRow[]>(NEXT_DUE, positionParameters(from));
    if (!rows[0]) throw new Error('the database gave no time');
    const { delayMs, fromAt, fromFacilityId } = rows[0];
    return { delayMs, from: { at: fromAt, facilityId: fromFacilityId } };
  }

  /**
   * Milliseconds, by the database's clock, until the next trigger is due; negative when one is overdue, null
   * without any.
   */
  async findNextDueDelayMs(database: Pick<EntityManager, 'query'>): Promise<number | null> {
    return (await this.findNextDue(database)).delayMs;
  }

  /**
   * Locks a batch of due triggers, longest due first, passing over those that another replica is firing, and
   * does with it in the same transaction what `decide` says: records the fires, stores their messages and
   * moves their triggers on; and takes triggers that cannot be evaluated out of the way of the others, until
   * they are scheduled again. `decide` is called again when PostgreSQL asks for a repetition. The messages of
   * occurrences that had fired before are not stored.
   * @param from no trigger that waits comes before it; null: nothing is known
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
   * As `fireDue`, for a batch that PostgreSQL refuses: each trigger is fired by itself, and one that is
   * refused alone is in ERROR.
   * @throws the fault of the server that refused all of them: it is no trigger's, and all stay due
   */
  fireEach(dataSource: DataSource, decide: Decide, from: DuePosition | null): Promise<Fired> {
    return inTransaction(dataSource, 'READ COMMITTED', async (manager) => {
      const due = await manager.query<DueTrigger[]>(ACQUIRE_DUE.text, positionParameters(from));
      const recorded: DecidedFire[] = [];
      const refused = await inParts(manager, due, async (savepoint, triggers) => {
        recorded.push(...(await this.record(savepoint, decide(triggers))));
      });
      const [first] = refused;
      if (first !== undefined && refused.length === due.length && isServerFault(first.error))
        throw first.error;
      const failed = refused.map(({ item: { facilityId }, error }) => ({ facilityId, error: String(error) }));
      const stuck = await inParts(manager, failed, (savepoint, each) =>
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
   * Makes the months to come and drops those that ended more than `days` ago, in steps with a transaction
   * each; gives how many were dropped. One replica at a time does it. What is left when it stops is for the
   * next run.
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
   * Forgets at most `limit` fires older than `days` that are in no month of their own, oldest first; gives
   * how many. Of replicas that do so at the same time one deletes and the others find nothing left.
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
   * The facility's next fire, null without a trigger that fires, and the database's time. `activeSince`: what
   * was due until then is not generated, because no business unit held the facility active; null if nothing
   * is known.
   */
  async findNextFire(
    manager: EntityManager,
    facilityId: number,
  ): Promise<{ now: Date; fire: TriggerPlan | null; activeSince: Date | null }> {
    const rows = await queryPrepared<NextFire>(manager, NEXT_FIRE, [facilityId]);
    const [row] = rows;
    if (!row) throw new Error('the database gave no time');
    return { now: row.now, fire: isFire(row) ? row : null, activeSince: row.activeSince };
  }

  /** The database's time of this transaction: replicas decide by it, never by their own clocks. */
  async databaseNow(manager: EntityManager): Promise<Date> {
    const rows = await manager.query<{ now: Date }[]>('SELECT now() AS now');
    if (!rows[0]) throw new Error('the database gave no time');
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

/** The trace of whoever changes a trigger now. */
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
