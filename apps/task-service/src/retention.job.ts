import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { ClockGuard } from '@platform/database';
import { CLOCK, Metrics, RecurringJob } from '@platform/service-defaults';
import { MINUTE_MS, SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import { TASK_CONFIG, type TaskServiceConfig } from './config';
import { InstancesRepository } from './instances/instances.repository';
import { ReleasedInstancesRepository } from './instances/released-instances.repository';
import { TemplatesRepository } from './instances/templates.repository';
import {
  type RemovedPosition,
  RemovedSchedulesRepository,
} from './stored-schedules/removed-schedules.repository';
import { TriggersRepository } from './scheduler/triggers.repository';

/** Released instances deleted per batch. Large, because each batch has to skip those that are kept. */
const SURPLUS_BATCH = 10_000;
/**
 * Maximum index entries that a step reads. With RELEASED_STEPS it limits a run, however many facilities
 * exist.
 */
const RELEASED_PER_STEP = 1_000_000;
/** Steps per run. */
const RELEASED_STEPS = 5;
/** Removed schedules per page. */
const REMOVED_PAGE = 1_000;
/** Pages per run. */
const REMOVED_PAGES = 100;

/** Prevents deletions while the clocks of the database and the replica differ. */
@Injectable()
export class RetentionGuard extends ClockGuard {
  constructor(@InjectDataSource() dataSource: DataSource, @Inject(CLOCK) clock: Clock, metrics: Metrics) {
    const skippedRuns = metrics.counter(
      'task_purges_put_off_total',
      'Runs of retention that deleted nothing, because the clocks of the database and the replica differ',
    );
    super(dataSource, clock, skippedRuns);
  }
}

/** Interval of retention, and the periods for which rows are kept. */
type RetentionConfig = Pick<
  TaskServiceConfig,
  | 'RETENTION_INTERVAL_SECONDS'
  | 'FIRE_RETENTION_DAYS'
  | 'INSTANCE_RETENTION_DAYS'
  | 'RELEASED_RETENTION_DAYS'
  | 'RELEASED_PER_FACILITY'
  | 'REMOVED_SCHEDULE_RETENTION_DAYS'
>;

/**
 * Maximum interval of purging released instances, so that a client that changes schedules continuously cannot
 * accumulate many.
 */
const RELEASED_INTERVAL_MS = 5 * MINUTE_MS;

/** A retention job that deletes nothing while the clocks differ. */
abstract class RetentionJob extends RecurringJob {
  protected constructor(
    private readonly guard: RetentionGuard,
    { RETENTION_INTERVAL_SECONDS }: RetentionConfig,
    metrics: Metrics,
    maxIntervalMs = Infinity,
  ) {
    super(Math.min(RETENTION_INTERVAL_SECONDS * SECOND_MS, maxIntervalMs), metrics);
  }

  /** Returns the number of rows deleted. */
  async run(): Promise<number> {
    return (await this.guard.clocksAgree()) ? this.purge() : 0;
  }

  protected abstract purge(): Promise<number>;
}

/**
 * Deletes old fires: whole months by dropping their partitions, fires of the default partition in batches.
 * Events need no such job: a published one is deleted at once, a parked one waits for an operator.
 */
@Injectable()
export class FireRetentionJob extends RetentionJob {
  constructor(
    private readonly triggers: TriggersRepository,
    @Inject(TASK_CONFIG) private readonly config: RetentionConfig,
    guard: RetentionGuard,
    metrics: Metrics,
  ) {
    super(guard, config, metrics);
  }

  /**
   * Maintains the monthly partitions, then deletes at most 100,000 old fires in batches. Returns their
   * number. An error of the partitions is thrown after the old fires are deleted.
   */
  protected async purge(): Promise<number> {
    const days = this.config.FIRE_RETENTION_DAYS;
    try {
      await this.triggers.keepMonths(days, () => this.stopping);
    } catch (error) {
      await this.deleteOld(days);
      throw error;
    }
    return this.deleteOld(days);
  }

  private deleteOld(days: number): Promise<number> {
    return this.removeInBatches((size) => this.triggers.deleteOldFires(days, size));
  }
}

/**
 * Deletes old completed and cancelled instances, if INSTANCE_RETENTION_DAYS is set. Pending ones are kept
 * however old: they are still work to do.
 */
@Injectable()
export class InstanceRetentionJob extends RetentionJob {
  constructor(
    private readonly instances: InstancesRepository,
    @Inject(TASK_CONFIG) private readonly config: RetentionConfig,
    guard: RetentionGuard,
    metrics: Metrics,
  ) {
    super(guard, config, metrics);
  }

  /** Deletes at most 100,000 instances, in batches. Returns their number. */
  protected async purge(): Promise<number> {
    const days = this.config.INSTANCE_RETENTION_DAYS;
    return days === 0 ? 0 : this.removeInBatches((size) => this.instances.deleteOld(days, size));
  }
}

/**
 * Deletes released instances, i.e. those that a change of a schedule or calendar cancelled: old ones, and
 * those over their facility's limit. A run reads at most 5 million index entries, facility by facility; the
 * next run continues.
 */
@Injectable()
export class ReleasedRetentionJob extends RetentionJob {
  private readonly deletedCount;
  /** Facility at which the last run ended; 0 to start over. */
  private position = 0;

  constructor(
    private readonly released: ReleasedInstancesRepository,
    @Inject(TASK_CONFIG) private readonly config: RetentionConfig,
    guard: RetentionGuard,
    metrics: Metrics,
  ) {
    super(guard, config, metrics, RELEASED_INTERVAL_MS);
    this.deletedCount = metrics.counter(
      'task_released_instances_forgotten_total',
      'Deleted instances that a change of their schedule or calendar had cancelled',
    );
  }

  /** Deletes in batches. Returns the number deleted. */
  protected async purge(): Promise<number> {
    const { RELEASED_RETENTION_DAYS: days, RELEASED_PER_FACILITY: kept } = this.config;
    let total = 0;
    if (days > 0) total += await this.removeInBatches((size) => this.released.purgeOld(days, size));
    for (let step = 1; step <= RELEASED_STEPS && !this.stopping; step += 1) {
      const { withMore, last } = await this.released.facilitiesWithMore(
        kept,
        this.position,
        RELEASED_PER_STEP,
      );
      for (const facilityId of withMore) total += await this.purgeSurplus(facilityId, kept);
      this.position = last ?? 0;
      if (last === null) break;
    }
    this.deletedCount.inc(total);
    return total;
  }

  private async purgeSurplus(facilityId: number, kept: number): Promise<number> {
    let total = 0;
    while (!this.stopping) {
      const removed = await this.released.purgeSurplus(facilityId, kept, SURPLUS_BATCH);
      total += removed;
      if (removed < SURPLUS_BATCH) break;
    }
    return total;
  }
}

/**
 * Deletes schedules that were removed long ago and have no instances left, if REMOVED_SCHEDULE_RETENTION_DAYS
 * is set.
 */
@Injectable()
export class RemovedScheduleRetentionJob extends RetentionJob {
  private readonly deletedCount;
  /**
   * Position at which the last run ended, so that schedules that must be kept are not examined in every run.
   */
  private position: RemovedPosition | null = null;

  constructor(
    private readonly schedules: RemovedSchedulesRepository,
    @Inject(TASK_CONFIG) private readonly config: RetentionConfig,
    guard: RetentionGuard,
    metrics: Metrics,
  ) {
    super(guard, config, metrics);
    this.deletedCount = metrics.counter(
      'task_removed_schedules_forgotten_total',
      'Removed schedules deleted because nothing referred to them any more',
    );
  }

  /** Examines at most 100,000 schedules. Returns the number deleted. */
  protected async purge(): Promise<number> {
    const days = this.config.REMOVED_SCHEDULE_RETENTION_DAYS;
    if (days === 0) return 0;
    await this.removeInBatches((size) => this.schedules.noteRemoval(size));
    let total = 0;
    for (let page = 0; page < REMOVED_PAGES && !this.stopping; page += 1) {
      const { purged, last } = await this.schedules.purge(days, this.position, REMOVED_PAGE);
      this.position = last;
      total += purged;
      this.deletedCount.inc(purged);
      if (last === null) break;
    }
    return total;
  }
}

/** Deletes templates that no schedule and no instance uses. */
@Injectable()
export class TemplateRetentionJob extends RetentionJob {
  constructor(
    private readonly templates: TemplatesRepository,
    @Inject(TASK_CONFIG) config: RetentionConfig,
    guard: RetentionGuard,
    metrics: Metrics,
  ) {
    super(guard, config, metrics);
  }

  /** Examines at most 100,000 templates. Returns their number. */
  protected purge(): Promise<number> {
    return this.removeInBatches((size) => this.templates.purgeUnused(size));
  }
}
