import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Actor } from '@platform/contracts';
import { In, Repository } from 'typeorm';
import type { EntityManager } from 'typeorm';
import type { FacilityScope } from '../access/caller-scope.service';
import { fewOf, pageOfFewRanges, pageOfManyRanges } from '../paging/page-of-ranges';
import { databaseNow } from '../stored-schedules/database-now.repository';
import { INSTANCE_STATUSES, TaskInstance } from './instance.entity';
import type { CancellationCause, InstanceStatus } from './instance.entity';
import { Template } from './template.entity';

export interface Completion {
  readonly completedAt: Date;
  readonly completedByPersonId: number | null;
  readonly completedByName: string | null;
  readonly completedByPersona: number;
  readonly notes: string | null;
}

export interface Cancellation {
  readonly cancelledAt: Date;
  readonly cancelledByPersonId: number | null;
  readonly cancelledByName: string | null;
  readonly cancelledByPersona: number;
  readonly cancellationReason: string | null;
}

/** Instances that a change of a schedule or calendar cancels, by their due instants. */
export interface ReleasedInstants {
  readonly scheduleId: string;
  readonly due: readonly Date[];
  readonly cause: Exclude<CancellationCause, 'Person'>;
  readonly actor: Actor | null;
  /** When the change was made; the same for all of its steps. */
  readonly cancelledAt: Date;
}

/** An instance that is locked by the current transaction. */
export interface LockedInstance {
  readonly instance: TaskInstance;
  readonly createdAt: Date;
  /** Database time, read after the lock was acquired. */
  readonly now: Date;
}

export type Occurrence = Pick<TaskInstance, 'scheduleId' | 'dueAt'>;

/**
 * Filters and range of a page of instances. `dueFrom` is inclusive, `dueTo` exclusive; both are ISO 8601 with
 * an offset.
 */
export interface InstanceListing {
  readonly scope: FacilityScope;
  readonly status?: InstanceStatus | undefined;
  readonly scheduleId?: string | undefined;
  readonly dueFrom?: string | undefined;
  readonly dueTo?: string | undefined;
  /** Position of the previous page's last row; empty for the first page. */
  readonly after: readonly unknown[];
  /** Position at which the scan for this page ends, inclusive; null: no end. */
  readonly end?: readonly unknown[] | null;
  readonly limit: number;
}

/** Sorts before every assigned identifier. */
const NIL_UUID = '00000000-0000-0000-0000-000000000000';
/** Sorts after every assigned identifier. */
const MAX_UUID = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

const INSTANCES = { table: 'task.instances', instant: 'due_at', id: 'task_instance_id' } as const;
const STATUSES = 'unnest(:statuses::text[]) AS wanted (status_key)';
const PAGE_OF_ALL = pageOfFewRanges({
  ...INSTANCES,
  sources: STATUSES,
  columns: ['status'],
  keys: ['status_key'],
});
const PAGE_OF_FACILITIES = pageOfManyRanges({
  ...INSTANCES,
  sources: `unnest(:facilities::bigint[]) AS mine (facility_key) CROSS JOIN ${STATUSES}`,
  columns: ['facility_id', 'status'],
  keys: ['facility_key', 'status_key'],
});

/**
 * Scans the instances of a schedule by its unique index and filters them. Reads no instances if the
 * schedule's facility is out of scope.
 */
const PAGE_OF_SCHEDULE = `
  instance.scheduleId = :scheduleId AND instance.status = ANY (:statuses)
    AND (:facilities::bigint[] IS NULL OR instance.facilityId = ANY (:facilities))
    AND (:facilities::bigint[] IS NULL
      OR coalesce((SELECT facility_id = ANY (:facilities) FROM task.schedules WHERE schedule_id = :scheduleId), true))
    AND (instance.dueAt, instance.taskInstanceId) > (:afterInstant::timestamptz, :afterId::uuid)
    AND instance.dueAt < :beforeInstant::timestamptz AND instance.dueAt <= :endInstant::timestamptz`;

/** Maximum instances of a schedule that one page scans for those in one state. */
const MAX_SCANNED = 5_000;

// Hand-written SQL: an index-only scan of the unique index of (schedule_id, due_at). Returns no row if the
// schedule does not exist or its facility is out of scope.
const SCAN_END = `
  SELECT due_at AS "dueAt" FROM task.instances
  WHERE schedule_id = $1 AND due_at >= $2 AND due_at < $3
    AND ($5::bigint[] IS NULL OR EXISTS (
      SELECT 1 FROM task.schedules AS schedule WHERE schedule.schedule_id = $1 AND schedule.facility_id = ANY ($5)))
  ORDER BY due_at OFFSET $4 - 1 LIMIT 1`;

// Hand-written SQL: inserts thousands of rows per statement, only those that are missing.
const INSERT_MISSING = `
  WITH inserted AS (
    INSERT INTO task.instances (schedule_id, facility_id, name, template, template_id, due_at)
    SELECT schedule.schedule_id, schedule.facility_id, schedule.name,
      CASE WHEN schedule.template_id IS NULL THEN schedule.template END, schedule.template_id, occurrence.due_at
    FROM unnest($1::uuid[], $2::timestamptz[]) AS occurrence (schedule_id, due_at)
    JOIN task.schedules AS schedule USING (schedule_id)
    ON CONFLICT (schedule_id, due_at) DO NOTHING
    RETURNING 1)
  SELECT count(*)::int AS count FROM inserted`;

// Hand-written SQL: ONLY, because released instances are never Pending.
const PENDING_DUE = `
  SELECT due_at AS "dueAt" FROM ONLY task.instances
  WHERE schedule_id = $1 AND status = 'Pending' AND due_at > $2
  ORDER BY due_at LIMIT $3`;

// Hand-written SQL: moves rows between tables. Moves only Pending instances: one that was completed first
// stays completed, and a later completion finds the instance cancelled.
const RELEASE = `
  WITH released AS (
    DELETE FROM ONLY task.instances WHERE schedule_id = $1 AND due_at = ANY ($2::timestamptz[]) AND status = 'Pending'
    RETURNING task_instance_id, schedule_id, facility_id, name, template, template_id, due_at, created_at
  ), moved AS (
    INSERT INTO task.released_instances (task_instance_id, schedule_id, facility_id, name, template, template_id, due_at,
      created_at, status, cancelled_at, cancellation_cause, cancelled_by_person_id, cancelled_by_name, cancelled_by_persona)
    SELECT task_instance_id, schedule_id, facility_id, name, template, template_id, due_at, created_at,
      'Cancelled', $3, $4, $5, $6, $7
    FROM released
    RETURNING 1)
  SELECT count(*)::int AS count FROM moved`;

// Hand-written SQL: updates from another table, and skips rows that are up to date. A database trigger sets
// `template_id` whenever `template` is set.
const COPY_FROM_SCHEDULE = `
  UPDATE ONLY task.instances AS instance
  SET name = schedule.name, template = CASE WHEN schedule.template_id IS NULL THEN schedule.template END
  FROM task.schedules AS schedule
  WHERE schedule.schedule_id = $1 AND instance.schedule_id = $1 AND instance.due_at = ANY ($2::timestamptz[])
    AND instance.status = 'Pending'
    AND (instance.name <> schedule.name OR instance.template_id IS DISTINCT FROM schedule.template_id
      OR schedule.template_id IS NULL AND instance.template IS DISTINCT FROM schedule.template)`;

// Hand-written SQL: counts by an index and stops at the limit.
const COUNT_PENDING = `
  SELECT count(*)::int AS count FROM (
    SELECT 1 FROM ONLY task.instances WHERE facility_id = $1 AND status = 'Pending' LIMIT $2) AS counted`;

const COUNT_PENDING_OF_SCHEDULE = `
  SELECT count(*)::int AS count FROM ONLY task.instances WHERE schedule_id = $1 AND status = 'Pending' AND due_at > $2`;

// Counts each span by the unique index of (schedule_id, due_at).
const COUNT_PENDING_OF_SCHEDULES = `
  SELECT coalesce(sum(counted.count), 0)::int AS count
  FROM unnest($1::uuid[], $2::timestamptz[]) AS span (schedule_id, after) CROSS JOIN LATERAL (
    SELECT count(*) AS count FROM ONLY task.instances AS instance
    WHERE instance.schedule_id = span.schedule_id AND instance.status = 'Pending'
      AND instance.due_at > span.after AND instance.due_at <= $3) AS counted`;

// Hand-written SQL: reads a batch of each status by an index. Skips rows that another transaction has locked;
// the next run deletes them.
const DELETE_OLD = `
  WITH deleted AS (
    DELETE FROM task.instances WHERE task_instance_id = ANY (ARRAY(
      SELECT old.id FROM unnest('{Completed,Cancelled}'::text[]) AS ended (status_key) CROSS JOIN LATERAL (
        SELECT task_instance_id AS id FROM task.instances
        WHERE status = ended.status_key AND due_at < now() - $1 * interval '1 day'
        ORDER BY due_at, task_instance_id
        LIMIT $2 FOR UPDATE SKIP LOCKED) AS old
      LIMIT $2))
    RETURNING 1)
  SELECT count(*)::int AS count FROM deleted`;

/**
 * Reads, generates, releases, completes and deletes instances. Reconciliation and the upkeep of templates
 * access `task.instances` in their own statements.
 */
@Injectable()
export class InstancesRepository {
  constructor(@InjectRepository(TaskInstance) private readonly instances: Repository<TaskInstance>) {}

  async find(taskInstanceId: string): Promise<TaskInstance | null> {
    const found = await this.instances.findOneBy({ taskInstanceId });
    return found && ((await this.withTemplates(this.instances.manager, [found]))[0] ?? null);
  }

  /** Returns the facility of an instance, or null if there is no such instance. */
  async facilityOf(taskInstanceId: string): Promise<number | null> {
    const found = await this.instances.findOne({ select: { facilityId: true }, where: { taskInstanceId } });
    return found?.facilityId ?? null;
  }

  /**
   * Returns the matching instances ordered by due time, after the position at which the previous page with
   * the same filters ended.
   */
  async list({
    scope,
    status,
    scheduleId,
    dueFrom,
    dueTo,
    after,
    end = null,
    limit,
  }: InstanceListing): Promise<TaskInstance[]> {
    const [afterInstant, afterId] = after.length === 0 ? [firstInstant(dueFrom), NIL_UUID] : after;
    const idsOfScope = scope === 'all' ? PAGE_OF_ALL : PAGE_OF_FACILITIES;
    const found = await this.instances
      .createQueryBuilder('instance')
      .where(scheduleId === undefined ? `instance.taskInstanceId = ANY (${idsOfScope})` : PAGE_OF_SCHEDULE)
      .setParameters({
        afterInstant,
        afterId,
        scheduleId,
        limit,
        few: fewOf(limit),
        beforeInstant: beforeInstant(dueTo),
        endInstant: end === null ? 'infinity' : end[0],
        statuses: status === undefined ? INSTANCE_STATUSES : [status],
        facilities: scope === 'all' ? null : [...new Set(scope)],
      })
      .orderBy('instance.dueAt')
      .addOrderBy('instance.taskInstanceId')
      .limit(limit)
      .getMany();
    return this.withTemplates(this.instances.manager, found);
  }

  /**
   * Returns the position at which the scan for a page of one schedule's instances in one state ends: a
   * schedule that is due every few minutes has 100,000 instances a year. Null if the scan needs no such
   * limit.
   */
  async scanEnd({
    scope,
    scheduleId,
    status,
    dueFrom,
    dueTo,
    after,
  }: Omit<InstanceListing, 'limit'>): Promise<readonly unknown[] | null> {
    if (scheduleId === undefined || status === undefined) return null;
    const from = after.length === 0 ? firstInstant(dueFrom) : after[0];
    const facilities = scope === 'all' ? null : scope;
    const values = [scheduleId, from, beforeInstant(dueTo), MAX_SCANNED, facilities];
    const [row] = await this.instances.query<{ dueAt: Date }[]>(SCAN_END, values);
    return row === undefined ? null : [row.dueAt, MAX_UUID];
  }

  /**
   * Fills in templates that are stored in `task.templates`. Reads each once, however many instances share it.
   */
  private async withTemplates(
    manager: EntityManager,
    instances: readonly TaskInstance[],
  ): Promise<TaskInstance[]> {
    const ids = new Set(
      instances.flatMap(({ template, templateId }) => (template === null ? (templateId ?? []) : [])),
    );
    if (ids.size === 0) return [...instances];
    const stored = await manager.findBy(Template, { templateId: In([...ids]) });
    const templates = new Map(stored.map(({ templateId, template }) => [templateId, template]));
    return instances.map((each) => ({
      ...each,
      template: each.template ?? templates.get(each.templateId ?? '') ?? null,
    }));
  }

  /**
   * Locks an instance until the transaction ends. Returns it with its creation time and the database time.
   * The time is read after the lock was acquired, so it is later than the changes of the transaction that
   * held the lock before. Null if there is no such instance.
   */
  async findAndLock(manager: EntityManager, taskInstanceId: string): Promise<LockedInstance | null> {
    // Looks twice: a transaction that held the lock may have released the instance, i.e. moved it to another
    // table. The second look finds it there.
    const locked = (await this.lock(manager, taskInstanceId)) ?? (await this.lock(manager, taskInstanceId));
    if (locked === null) return null;
    const [instance = locked.instance] = await this.withTemplates(manager, [locked.instance]);
    return { ...locked, instance, now: await databaseNow(manager) };
  }

  private async lock(
    manager: EntityManager,
    taskInstanceId: string,
  ): Promise<Omit<LockedInstance, 'now'> | null> {
    const { entities, raw } = await manager
      .createQueryBuilder(TaskInstance, 'instance')
      .addSelect('instance.created_at', 'made')
      .where('instance.taskInstanceId = :taskInstanceId', { taskInstanceId })
      .setLock('for_no_key_update')
      .getRawAndEntities<{ made: Date }>();
    const [[instance], [row]] = [entities, raw];
    return instance && row ? { instance, createdAt: row.made } : null;
  }

  /** Completes a locked instance. */
  async markCompleted(manager: EntityManager, taskInstanceId: string, completion: Completion): Promise<void> {
    await manager.update(TaskInstance, { taskInstanceId }, { ...completion, status: 'Completed' });
  }

  /** Cancels a locked instance for good: its instant stays occupied. */
  async markCancelled(
    manager: EntityManager,
    taskInstanceId: string,
    cancellation: Cancellation,
  ): Promise<void> {
    const change = { ...cancellation, status: 'Cancelled', cancellationCause: 'Person' } as const;
    await manager.update(TaskInstance, { taskInstanceId }, change);
  }

  /** Returns the due instants of a schedule's next pending instances, ascending, at most `limit`. */
  async pendingDue(manager: EntityManager, scheduleId: string, after: Date, limit: number): Promise<Date[]> {
    const rows = await manager.query<{ dueAt: Date }[]>(PENDING_DUE, [scheduleId, after, limit]);
    return rows.map(({ dueAt }) => dueAt);
  }

  /** Cancels the pending instances at these instants and frees the instants. Returns the number cancelled. */
  async release(
    manager: EntityManager,
    { scheduleId, due, cause, actor, cancelledAt }: ReleasedInstants,
  ): Promise<number> {
    if (due.length === 0) return 0;
    const by = [actor?.personId ?? null, actor?.name ?? null, actor?.persona ?? null];
    const values = [scheduleId, due, cancelledAt, cause, ...by];
    const rows = await manager.query<{ count: number }[]>(RELEASE, values);
    return rows[0]?.count ?? 0;
  }

  /** Counts the pending instances of a facility, up to `limit`. */
  async countPending(manager: EntityManager, facilityId: number, limit: number): Promise<number> {
    const rows = await manager.query<{ count: number }[]>(COUNT_PENDING, [facilityId, limit]);
    return rows[0]?.count ?? 0;
  }

  /** Counts the pending instances of a schedule that are due after an instant. */
  async countPendingOfSchedule(manager: EntityManager, scheduleId: string, after: Date): Promise<number> {
    const rows = await manager.query<{ count: number }[]>(COUNT_PENDING_OF_SCHEDULE, [scheduleId, after]);
    return rows[0]?.count ?? 0;
  }

  /**
   * Counts the pending instances of several schedules: for each, those due after its `after` and not after
   * `until`.
   */
  async countPendingOfSchedules(
    manager: EntityManager,
    spans: readonly { readonly scheduleId: string; readonly after: Date }[],
    until: Date,
  ): Promise<number> {
    const rows = await manager.query<{ count: number }[]>(COUNT_PENDING_OF_SCHEDULES, [
      spans.map(({ scheduleId }) => scheduleId),
      spans.map(({ after }) => after),
      until,
    ]);
    return rows[0]?.count ?? 0;
  }

  /**
   * Deletes at most `limit` completed or cancelled instances, released ones included, that were due more than
   * `days` ago. Returns their number. Replicas that run this at the same time skip each other's rows.
   */
  async deleteOld(days: number, limit: number): Promise<number> {
    const rows = await this.instances.query<{ count: number }[]>(DELETE_OLD, [days, limit]);
    return rows[0]?.count ?? 0;
  }

  /** Copies the schedule's name and template to its pending instances at the given instants. */
  async copyFromSchedule(manager: EntityManager, scheduleId: string, due: readonly Date[]): Promise<void> {
    if (due.length > 0) await manager.query(COPY_FROM_SCHEDULE, [scheduleId, due]);
  }

  /**
   * Creates the missing instances and returns their number. An instance is unique per schedule and due
   * instant.
   */
  async insertMissing(manager: EntityManager, occurrences: readonly Occurrence[]): Promise<number> {
    const rows = await manager.query<{ count: number }[]>(INSERT_MISSING, [
      occurrences.map(({ scheduleId }) => scheduleId),
      occurrences.map(({ dueAt }) => dueAt),
    ]);
    return rows[0]?.count ?? 0;
  }
}

// Converted to dates, because PostgreSQL rejects some instants that ISO 8601 allows: with an offset of 23 h,
// or in the year 0.
function firstInstant(dueFrom: string | undefined): Date | '-infinity' {
  return dueFrom === undefined ? '-infinity' : new Date(dueFrom);
}

function beforeInstant(dueTo: string | undefined): Date | 'infinity' {
  return dueTo === undefined ? 'infinity' : new Date(dueTo);
}
