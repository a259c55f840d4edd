import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { inTwoRoundTrips, queryPrepared } from '@platform/database';
import type { Query } from '@platform/database';
import { traceHeaders } from '@platform/service-defaults';
import { Any, LessThan, Repository } from 'typeorm';
import type { DataSource, EntityManager } from 'typeorm';
import type { FacilityScope } from '../access/caller-scope.service';
import type { NewOutboxMessage } from '../outbound/outbox-message.entity';
import type { DueFire } from './due-fire';
import { TriggerFire } from './trigger-fire.entity';
import { JOB_NAME, TRIGGER_GROUP, Trigger, triggerName } from './trigger.entity';

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

/** A decided fire with the message that carries it. */
export interface DecidedFire extends DueFire {
  readonly facilityId: number;
  readonly message: NewOutboxMessage;
}

/** What a batch of due triggers does: those that fire, and those that cannot be evaluated. */
export interface Decisions {
  readonly fires: DecidedFire[];
  readonly failed: { facilityId: number; error: string }[];
}

/** When a trigger fires. */
export type TriggerPlan = Pick<
  Trigger,
  'facilityId' | 'schedule' | 'timeZone' | 'nextFireAt' | 'jitterSeconds'
>;

/** How the scheduler's triggers stand. */
export interface TriggerBacklog {
  /** How long the trigger has been due that waits longest, by the database's clock; 0 when none is due. */
  readonly lagSeconds: number;
  /** Triggers that cannot be evaluated, counted up to 10,000. */
  readonly failed: number;
}

export interface TriggerListing {
  readonly scope: FacilityScope;
  /** Facility of the last row of the page before; empty for the first page. */
  readonly after: readonly unknown[];
  readonly limit: number;
}

// By hand: locked, and hot. now() is an index condition; clock_timestamp() would scan every waiting trigger.
// The limit is part of the text: a plan for any limit would be one for a tenth of the table.
const ACQUIRE_DUE = {
  name: 'acquire-due-triggers',
  text: `
  SELECT facility_id::float8 AS "facilityId", schedule, time_zone AS "timeZone", origin_trace AS "originTrace",
    jitter_seconds AS "jitterSeconds", next_fire_at AS "dueAt", now() AS now
  FROM task.triggers
  WHERE state = 'WAITING' AND next_fire_at <= now()
  ORDER BY next_fire_at, facility_id
  LIMIT ${String(BATCH_SIZE)}
  FOR UPDATE SKIP LOCKED`,
};

// By hand: one round trip for everything a batch writes. Moving the trigger does not depend on the insert: an occurrence that fired
// before moves on all the same, but only a new one has its message stored. The triggers are found by $1: a plan that was made
// for a small table joins the fires with all of a large one.
const RECORD_FIRES = {
  name: 'record-fires',
  text: `
  WITH fire AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::boolean[], $4::integer[], $5::uuid[], $6::timestamptz[],
        $7::smallint[], $8::text[], $9::timestamptz[], $10::json[], $11::json[]) WITH ORDINALITY
      AS fire (facility_id, scheduled_at, misfired, missed_count, message_id, next_fire_at,
        partition, message_type, sent_at, trace_headers, message, position)
  ), moved AS (
    UPDATE task.triggers AS trigger
    SET next_fire_at = fire.next_fire_at, previous_fire_at = fire.scheduled_at
    FROM fire WHERE trigger.facility_id = ANY ($1) AND trigger.facility_id = fire.facility_id
  ), recorded AS (
    INSERT INTO task.fires (facility_id, scheduled_at, misfired, missed_count, message_id)
    SELECT facility_id, scheduled_at, misfired, missed_count, message_id FROM fire
    ON CONFLICT DO NOTHING
    RETURNING message_id
  ), stored AS (
    INSERT INTO task.outbox (partition, facility_id, message_id, message_type, sent_at, trace_headers, message)
    SELECT partition, facility_id, message_id, message_type, sent_at, trace_headers, message
    FROM fire JOIN recorded USING (message_id)
    ORDER BY position
  )
  SELECT message_id AS "messageId" FROM recorded`,
};

// By hand: rare, and then before RECORD_FIRES in one statement.
const FAIL = `
  WITH failed AS (
    UPDATE task.triggers AS trigger SET state = 'ERROR', error = failed.error
    FROM unnest($12::bigint[], $13::text[]) AS failed (facility_id, error)
    WHERE trigger.facility_id = failed.facility_id
  )`;

// By hand: in a batch. In order, as everybody locks triggers who locks several and waits.
const INSERT_MISSING = `
  INSERT INTO task.triggers (facility_id, trigger_name, trigger_group, job_name, schedule, time_zone, next_fire_at, jitter_seconds,
    origin_trace)
  SELECT facility_id, name, $7, $8, schedule, time_zone, next_fire_at, jitter_seconds, $9
  FROM unnest($1::bigint[], $2::text[], $3::text[], $4::timestamptz[], $5::integer[], $6::text[])
    AS plan (facility_id, schedule, time_zone, next_fire_at, jitter_seconds, name)
  ORDER BY facility_id
  ON CONFLICT DO NOTHING
  RETURNING facility_id::float8 AS "facilityId"`;

// By hand: in a batch.
const RESCHEDULE = `
  UPDATE task.triggers AS trigger
  SET schedule = plan.schedule, time_zone = plan.time_zone, next_fire_at = plan.next_fire_at,
    jitter_seconds = plan.jitter_seconds, origin_trace = $6, error = NULL,
    state = CASE trigger.state WHEN 'ERROR' THEN 'WAITING' ELSE trigger.state END
  FROM unnest($1::bigint[], $2::text[], $3::text[], $4::timestamptz[], $5::integer[])
    AS plan (facility_id, schedule, time_zone, next_fire_at, jitter_seconds)
  WHERE trigger.facility_id = ANY ($1) AND trigger.facility_id = plan.facility_id`;

// By hand: in a batch, and by what another table says.
const DELETE_INACTIVE = `
  DELETE FROM task.triggers AS trigger WHERE facility_id = ANY ($1::bigint[]) AND NOT EXISTS (
    SELECT 1 FROM task.business_unit_facilities AS pair WHERE pair.facility_id = trigger.facility_id AND pair.is_active)`;

// By hand: the time comes with it. Every generation asks.
const NEXT_FIRE = {
  name: 'next-fire',
  text: `
  SELECT now() AS now, facility_id::float8 AS "facilityId", schedule, time_zone AS "timeZone",
    jitter_seconds AS "jitterSeconds", next_fire_at AS "nextFireAt"
  FROM (SELECT $1::bigint AS facility) AS asked
  LEFT JOIN task.triggers AS trigger ON trigger.facility_id = asked.facility AND trigger.state <> 'ERROR'`,
};

// By hand: every replica asks again and again.
const NEXT_DUE_DELAY = `
  SELECT (extract(epoch FROM min(next_fire_at) - now()) * 1000)::float8 AS "delayMs"
  FROM task.triggers WHERE state = 'WAITING'`;

const COUNT_LIMIT = 10_000;
const BACKLOG = `
  SELECT greatest(coalesce((SELECT extract(epoch FROM now() - min(next_fire_at)) FROM task.triggers
      WHERE state = 'WAITING'), 0), 0)::float8 AS "lagSeconds",
    (SELECT count(*)::int FROM (SELECT 1 FROM task.triggers WHERE state = 'ERROR' LIMIT $1) AS counted) AS failed`;

// By hand: in batches, from the partition that is no month. A fire is what keeps its occurrence from firing again, so the one that a trigger
// stands on stays whatever its age: a trigger paused or in error for longer than the retention must not fire that occurrence a second time.
// Found by index and deleted where they were found; joined, the planner may rather read the whole table for each batch. Fires are never
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

function recordStatement({ fires, failed }: Decisions): Query {
  const column = <T>(pick: (fire: DecidedFire) => T): T[] => fires.map(pick);
  const values = [
    column((fire) => fire.facilityId),
    column((fire) => fire.scheduledAt),
    column((fire) => fire.misfired),
    column((fire) => fire.missedCount),
    column(({ message }) => message.messageId),
    column((fire) => fire.nextFireAt),
    column(({ message }) => message.partition),
    column(({ message }) => message.messageType),
    column(({ message }) => message.sentAt),
    column(({ message }) => JSON.stringify(message.traceHeaders)),
    column(({ message }) => JSON.stringify(message.message)),
  ];
  if (failed.length === 0) return { ...RECORD_FIRES, values };
  values.push(
    failed.map(({ facilityId }) => facilityId),
    failed.map(({ error }) => error),
  );
  return { text: RECORD_FIRES.text.replace('WITH', `${FAIL},`), values };
}

/** A trigger that is there and then gone again was deleted in between; nobody does that over and over. */
const MAX_LOOKS = 5;

/** Every statement on `task.triggers` and on the fires of triggers. */
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
      ...{ where: { facilityId, ...before }, order: { scheduledAt: 'DESC' }, take: limit },
    });
  }

  /** Reads the facility's trigger and keeps everybody else from changing it until the transaction ends. Waits for a fire under way. */
  findAndLock(manager: EntityManager, facilityId: number): Promise<Trigger | null> {
    return manager.findOne(Trigger, { where: { facilityId }, lock: { mode: 'pessimistic_write' } });
  }

  /** Creates the triggers that the facilities lack, and locks those that they have and gives them as they are. Needs READ COMMITTED: it looks
   *  again at what came in between. */
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
        ...[TRIGGER_GROUP, JOB_NAME, originTrace()],
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

  /** Gives locked triggers another schedule. A pause is its operator's decision and outlives that; an error does not. */
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

  /** Removes the triggers of those facilities that no business unit holds active any more. */
  async deleteInactive(manager: EntityManager, facilityIds: readonly number[]): Promise<void> {
    await manager.query(DELETE_INACTIVE, [facilityIds]);
  }

  /** Milliseconds, by the database's clock, until the next trigger is due; negative when one is overdue, null without any. */
  async findNextDueDelayMs(database: Pick<EntityManager, 'query'>): Promise<number | null> {
    const rows = await database.query<{ delayMs: number | null }[]>(NEXT_DUE_DELAY);
    return rows[0]?.delayMs ?? null;
  }

  /** Locks a batch of due triggers, longest due first, passing over those that another replica is firing, and does with it in the same
   *  transaction what `decide` says: records the fires, stores their messages and moves their triggers on; and takes triggers that cannot
   *  be evaluated out of the way of the others, until they are scheduled again. `decide` is called again when PostgreSQL asks for a
   *  repetition. `recorded`: the fires of occurrences that had not fired before; the messages of the others are not stored. */
  async fireDue(
    dataSource: DataSource,
    decide: (due: readonly DueTrigger[]) => Decisions,
  ): Promise<{ acquired: number; recorded: DecidedFire[] }> {
    let { fires, failed }: Decisions = { fires: [], failed: [] };
    const rows = await inTwoRoundTrips<DueTrigger, { messageId: string }>(dataSource, ACQUIRE_DUE, (due) => {
      ({ fires, failed } = decide(due));
      return due.length === 0 ? null : recordStatement({ fires, failed });
    });
    const recorded = new Set(rows.map(({ messageId }) => messageId));
    return {
      acquired: fires.length + failed.length,
      recorded: fires.filter(({ message }) => recorded.has(message.messageId)),
    };
  }

  /** Makes the months to come and drops those that ended more than `days` ago; gives how many. One replica at a time does it. */
  async keepMonths(days: number): Promise<number> {
    const rows = await this.triggers.query<{ dropped: number }[]>('SELECT task.keep_fires($1) AS dropped', [
      days,
    ]);
    return rows[0]?.dropped ?? 0;
  }

  /** Forgets at most `limit` fires older than `days` that are in no month of their own, oldest first; gives how many. Of replicas that do
   *  so at the same time one deletes and the others find nothing left. */
  async deleteOldFires(days: number, limit: number): Promise<number> {
    const rows = await this.triggers.query<{ count: number }[]>(DELETE_OLD_FIRES, [days, limit]);
    return rows[0]?.count ?? 0;
  }

  async readBacklog(): Promise<TriggerBacklog> {
    const rows = await this.triggers.query<TriggerBacklog[]>(BACKLOG, [COUNT_LIMIT]);
    return rows[0] ?? { lagSeconds: 0, failed: 0 };
  }

  /** The facility's next fire, null without a trigger that fires, and the database's time. */
  async findNextFire(
    manager: EntityManager,
    facilityId: number,
  ): Promise<{ now: Date; fire: TriggerPlan | null }> {
    const rows = await queryPrepared<NextFire>(manager, NEXT_FIRE, [facilityId]);
    const [row] = rows;
    if (!row) throw new Error('the database gave no time');
    return { now: row.now, fire: isFire(row) ? row : null };
  }

  /** The database's time of this transaction: replicas decide by it, never by their own clocks. */
  async databaseNow(manager: EntityManager): Promise<Date> {
    const rows = await manager.query<{ now: Date }[]>('SELECT now() AS now');
    if (!rows[0]) throw new Error('the database gave no time');
    return rows[0].now;
  }
}

type NextFire = { now: Date } & (TriggerPlan | { facilityId: null });

function isFire(row: NextFire): row is { now: Date } & TriggerPlan {
  return row.facilityId !== null;
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
  ];
}
