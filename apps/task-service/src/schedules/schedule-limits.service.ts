import { Inject, Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { CLOCK_STEP_SECONDS } from '@platform/database';
import { CLOCK, Metrics } from '@platform/service-defaults';
import { HOUR_MS, SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import type { EntityManager } from 'typeorm';
import { type FacilityScope, isWithinScope } from '../access/caller-scope.service';
import { TASK_CONFIG, type TaskServiceConfig } from '../config';
import { TaskError } from '../problems/task-error';
import { GenerationBudget } from '../recurring-generation/generation-budget.service';
import { ChangeSlots } from '../slots/change-slots.service';
import {
  checkRecurrence,
  hasEnded,
  minIntervalMinutes,
  readableRecurrence,
  type Recurrence,
  type RecurrenceText,
} from '../recurrence/recurrence';
import type { ScheduleCommand } from '../stored-schedules/schedule-states';
import type { Schedule } from '../stored-schedules/schedule.entity';
import {
  type ChangeCount,
  type ScheduleChange,
  SchedulesRepository,
} from '../stored-schedules/schedules.repository';

type LimitConfig = Pick<
  TaskServiceConfig,
  'SCHEDULES_PER_FACILITY' | 'SCHEDULE_MIN_INTERVAL_MINUTES' | 'SCHEDULE_CHANGES_PER_HOUR'
>;

interface Reach {
  readonly caller: Caller;
  readonly scope: FacilityScope;
}

interface Creation {
  readonly facilityId: number;
  readonly calendarId: string | null;
  readonly recurrence: Recurrence;
  readonly now: Date;
}

/** Checks the limits of schedules. */
@Injectable()
export class ScheduleLimits {
  private readonly refusedChanges;
  private readonly refusedCreations;

  constructor(
    private readonly schedules: SchedulesRepository,
    private readonly budget: GenerationBudget,
    @Inject(TASK_CONFIG) private readonly config: LimitConfig,
    metrics: Metrics,
    private readonly slots: ChangeSlots,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {
    this.refusedCreations = metrics.counter(
      'task_schedule_creation_refusals_total',
      'Schedules refused because SCHEDULE_CREATIONS_PER_HOUR had been created for their facility within the hour',
    );
    this.refusedChanges = metrics.counter(
      'task_schedule_change_refusals_total',
      'Changes of schedules refused because the schedule had been changed SCHEDULE_CHANGES_PER_HOUR times within the hour',
    );
  }

  /**
   * Runs a change of a schedule once a slot is free. A caller that may not change the schedule is rejected
   * before it waits, so that it does not delay others.
   * @throws {TaskError} schedule-not-found, facility-not-permitted, too-many-changes-at-once, changes-busy
   */
  async withSlot<T>(scheduleId: string, { caller, scope }: Reach, change: () => Promise<T>): Promise<T> {
    if (scope !== 'all') {
      const facilityId = await this.slots.lookUp(caller, () => this.schedules.facilityOf(scheduleId));
      if (facilityId === null) throw new TaskError('schedule-not-found');
      if (!isWithinScope(scope, facilityId)) throw new TaskError('facility-not-permitted');
    }
    return this.slots.run(scheduleId, caller, change);
  }

  /**
   * Runs a creation once a slot is free. A creation that may wait for a lock, or must count the facility's
   * instances, takes a slot of the changes; the others are stored in batches.
   * @throws {TaskError} too-many-changes-at-once, changes-busy
   */
  withCreationSlot<T>(
    { facilityId, calendarId, recurrence, now }: Creation,
    caller: Caller,
    create: () => Promise<T>,
  ): Promise<T> {
    const isQuick = calendarId === null && this.budget.isSmall(recurrence, now);
    if (isQuick) return this.slots.runInBatch(facilityId, create);
    return this.slots.run(`facility ${String(facilityId)}`, caller, create);
  }

  /** Returns the error for a creation that a limit of its facility has refused. */
  async refusalOfNew(facilityId: number): Promise<TaskError> {
    const nextAt = await this.schedules.nextCreationAt(facilityId);
    if (nextAt === null) return new TaskError('schedule-limit-reached');
    this.refusedCreations.inc();
    const waitMs = nextAt.getTime() - this.clock.now().getTime();
    return new TaskError('schedules-created-too-often', {
      retryAfterSeconds: Math.max(1, Math.ceil(waitMs / SECOND_MS)),
    });
  }

  /**
   * Validates the recurrence of a new schedule.
   * @throws {TaskError} schedule-not-evaluable, instant-out-of-range, schedule-ends-before-start,
   * schedule-too-frequent
   */
  recurrenceOfNew(text: Omit<RecurrenceText, 'excludedDates'>, caller: Caller): Recurrence {
    return checkRecurrence(text, minIntervalMinutes(caller, this.config));
  }

  /**
   * Checks that a new schedule has not ended and that its facility has room for its instances.
   * @throws {TaskError} schedule-ended, instance-limit-reached
   */
  async requireNew(facilityId: number, recurrence: Recurrence, now: Date): Promise<void> {
    if (hasEnded(recurrence, now)) throw new TaskError('schedule-ended');
    await this.budget.require({ facilityId, recurrence, scheduleId: null }, now);
  }

  /**
   * Checks the limits for an update of a locked schedule.
   * @throws {TaskError} schedule-not-evaluable, instant-out-of-range, schedule-ends-before-start,
   * schedule-too-frequent, schedule-ended, instance-limit-reached, schedule-limit-reached
   */
  async requireUpdate(
    manager: EntityManager,
    { schedule, now }: { schedule: Schedule; now: Date },
    { change, caller }: { change: ScheduleChange; caller: Caller },
  ): Promise<void> {
    const changed = { ...schedule, ...change };
    // The minimum interval is checked only if the expression changes: an InternalPartner may have created the
    // schedule with a shorter one.
    const minutes = change.schedule === undefined ? 1 : minIntervalMinutes(caller, this.config);
    const recurrence = checkRecurrence(changed, minutes);
    if (change.endDate !== undefined && hasEnded(recurrence, now)) throw new TaskError('schedule-ended');
    if (schedule.status !== 'Active' || hasEnded(recurrence, now)) return;
    if (schedule.endedAt !== null) await this.requireCount(manager, schedule.facilityId);
    await this.budget.require({ ...changed, recurrence }, now, manager);
  }

  /**
   * Checks the limits for resuming a locked schedule.
   * @throws {TaskError} schedule-limit-reached, instance-limit-reached, schedule-not-evaluable
   */
  async requireResumable(manager: EntityManager, schedule: Schedule, now: Date): Promise<void> {
    const recurrence = readableRecurrence({ ...schedule, excludedDates: null });
    if (hasEnded(recurrence, now)) return;
    await this.requireCount(manager, schedule.facilityId);
    await this.budget.require({ ...schedule, recurrence }, now, manager);
  }

  /**
   * Counts a change against the hourly limit, because each may rewrite thousands of instances. `remove` is
   * counted, but not limited.
   * @throws {TaskError} schedule-changed-too-often
   */
  countChange({ changesSince, changeCount }: ChangeCount, now: Date, command: ScheduleCommand): ChangeCount {
    const hourEndMs = (changesSince?.getTime() ?? -Infinity) + HOUR_MS;
    const waitMs = hourEndMs - now.getTime();
    // An hour that ends more than an hour from now was started by a clock that was ahead.
    if (waitMs <= 0 || waitMs > HOUR_MS + CLOCK_STEP_SECONDS * SECOND_MS)
      return { changesSince: now, changeCount: 1 };
    if (command !== 'remove' && changeCount >= this.config.SCHEDULE_CHANGES_PER_HOUR) {
      this.refusedChanges.inc();
      const retryAfterSeconds = Math.ceil(waitMs / SECOND_MS);
      throw new TaskError('schedule-changed-too-often', { retryAfterSeconds });
    }
    return { changesSince, changeCount: changeCount + 1 };
  }

  private async requireCount(manager: EntityManager, facilityId: number): Promise<void> {
    const limit = this.config.SCHEDULES_PER_FACILITY;
    if ((await this.schedules.countActive(manager, facilityId, limit)) >= limit)
      throw new TaskError('schedule-limit-reached');
  }
}
