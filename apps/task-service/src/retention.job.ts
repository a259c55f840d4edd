import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { ClockGuard } from '@platform/database';
import { CLOCK, Metrics, RecurringJob } from '@platform/service-defaults';
import { MINUTE_MS, SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import { TASK_CONFIG, type TaskServiceConfig } from './config';
import { InstancesRepository } from './instances/instances.repository';
import { ReleasesRepository } from './instances/releases.repository';
import { TemplatesRepository } from './instances/templates.repository';
import { type RemovedPosition, RemovedSchedulesRepository } from './schedules/removed-schedules.repository';
import { TriggersRepository } from './scheduler/triggers.repository';

/** Each batch looks past those that stay, so it is a big one. */
const SURPLUS_BATCH = 10_000;
/**
 * Entries of an index that a step reads, and steps of one run: a run reads no more, however many facilities
 * there are.
 */
const RELEASED_PER_STEP = 1_000_000;
const RELEASED_STEPS = 5;
const REMOVED_PAGE = 1_000;
const REMOVED_PAGES = 100;

/** Whether the clocks of the database and the replica allow to forget anything for good. */
@Injectable()
export class RetentionGuard extends ClockGuard {
  constructor(@InjectDataSource() dataSource: DataSource, @Inject(CLOCK) clock: Clock, metrics: Metrics) {
    const putOff = metrics.counter(
      'task_purges_put_off_total',
      'Runs of retention that forgot nothing, because the clocks of the database and the replica differ',
    );
    super(dataSource, clock, putOff);
  }
}

/** How often retention runs, and how long rows are kept. */
type RetentionConfig = Pick<
  TaskServiceConfig,
  | 'RETENTION_INTERVAL_SECONDS'
  | 'FIRE_RETENTION_DAYS'
  | 'INSTANCE_RETENTION_DAYS'
  | 'RELEASED_RETENTION_DAYS'
  | 'RELEASED_PER_FACILITY'
  | 'REMOVED_SCHEDULE_RETENTION_DAYS'
>;

/** Of released instances: whoever changes schedules all day leaves no more than that behind. */
const RELEASED_INTERVAL_MS = 5 * MINUTE_MS;

/** Forgets nothing while the clocks differ. */
abstract class RetentionJob extends RecurringJob {
  protected constructor(
    private readonly guard: RetentionGuard,
    { RETENTION_INTERVAL_SECONDS }: RetentionConfig,
    metrics: Metrics,
    longestIntervalMs = Infinity,
  ) {
    super(Math.min(RETENTION_INTERVAL_SECONDS * SECOND_MS, longestIntervalMs), metrics);
  }

  /** Gives how many rows it has deleted. */
  async run(): Promise<number> {
    return (await this.guard.clocksAgree()) ? this.forget() : 0;
  }

  protected abstract forget(): Promise<number>;
}

/** Forgets old fires: by the month, and in batches what is in no month of its own. Events need no such job: a
 *  published one is deleted at once, a parked one waits for its operator. */
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
   * Deletes in batches until nothing old is left, at most 100,000 fires; gives how many. Old fires go
   * although months cannot be kept: that failure is reported afterwards.
   */
  protected async forget(): Promise<number> {
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

/** Forgets instances that were due long ago and are completed or cancelled, if that is configured. Pending
 *  ones
 *  are work to do, however old they are. */
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

  /** Deletes in batches until nothing old is left, at most 100,000 instances; gives how many. */
  protected async forget(): Promise<number> {
    const days = this.config.INSTANCE_RETENTION_DAYS;
    return days === 0 ? 0 : this.removeInBatches((size) => this.instances.deleteOld(days, size));
  }
}

/** Deletes instances that a change of a schedule cancelled: old ones, and those over their facility's limit.
 *  A run reads five million entries of an index, facility by facility; the next run goes on. */
@Injectable()
export class ReleasedRetentionJob extends RetentionJob {
  private readonly forgotten;
  /** The facility at which the last run ended; 0 at the beginning. */
  private position = 0;

  constructor(
    private readonly releases: ReleasesRepository,
    @Inject(TASK_CONFIG) private readonly config: RetentionConfig,
    guard: RetentionGuard,
    metrics: Metrics,
  ) {
    super(guard, config, metrics, RELEASED_INTERVAL_MS);
    this.forgotten = metrics.counter(
      'task_released_instances_forgotten_total',
      'Instances deleted that a change of their schedule had cancelled',
    );
  }

  /** Deletes in batches; gives how many. */
  protected async forget(): Promise<number> {
    const { RELEASED_RETENTION_DAYS: days, RELEASED_PER_FACILITY: kept } = this.config;
    let total = 0;
    if (days > 0) total += await this.removeInBatches((size) => this.releases.forgetOld(days, size));
    for (let step = 1; step <= RELEASED_STEPS && !this.stopping; step += 1) {
      const { withMore, last } = await this.releases.facilitiesWithMore(
        kept,
        this.position,
        RELEASED_PER_STEP,
      );
      for (const facilityId of withMore) total += await this.forgetSurplus(facilityId, kept);
      this.position = last ?? 0;
      if (last === null) break;
    }
    this.forgotten.inc(total);
    return total;
  }

  private async forgetSurplus(facilityId: number, kept: number): Promise<number> {
    let total = 0;
    while (!this.stopping) {
      const removed = await this.releases.forgetSurplus(facilityId, kept, SURPLUS_BATCH);
      total += removed;
      if (removed < SURPLUS_BATCH) break;
    }
    return total;
  }
}

/** Forgets schedules that were removed long ago and to which no instance refers any more, if that is
 *  configured. */
@Injectable()
export class RemovedScheduleRetentionJob extends RetentionJob {
  private readonly forgotten;
  /** Where the last run ended: those that stay are not looked at over and over. */
  private position: RemovedPosition | null = null;

  constructor(
    private readonly schedules: RemovedSchedulesRepository,
    @Inject(TASK_CONFIG) private readonly config: RetentionConfig,
    guard: RetentionGuard,
    metrics: Metrics,
  ) {
    super(guard, config, metrics);
    this.forgotten = metrics.counter(
      'task_removed_schedules_forgotten_total',
      'Removed schedules deleted because nothing referred to them any more',
    );
  }

  /** Looks at no more than 100,000 schedules; gives how many it has deleted. */
  protected async forget(): Promise<number> {
    const days = this.config.REMOVED_SCHEDULE_RETENTION_DAYS;
    if (days === 0) return 0;
    await this.removeInBatches((size) => this.schedules.noteRemoval(size));
    let total = 0;
    for (let page = 0; page < REMOVED_PAGES && !this.stopping; page += 1) {
      const { purged, last } = await this.schedules.purge(days, this.position, REMOVED_PAGE);
      this.position = last;
      total += purged;
      this.forgotten.inc(purged);
      if (last === null) break;
    }
    return total;
  }
}

/** Forgets templates that no schedule and no instance has any more. */
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

  /** Looks at no more than 100,000 templates; gives how many. */
  protected forget(): Promise<number> {
    return this.removeInBatches((size) => this.templates.forgetUnused(size));
  }
}
