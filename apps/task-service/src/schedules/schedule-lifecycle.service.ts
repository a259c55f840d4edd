import { Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import type { Actor } from '@platform/contracts';
import { isForeignKeyViolation } from '@platform/database';
import { type EntityTags, mayWrite } from '@platform/service-defaults';
import type { EntityManager } from 'typeorm';
import { actorOf, CallerScope, type FacilityScope, isWithinScope } from '../access/caller-scope.service';
import { MANAGERS } from '../access/route-personas';
import { databaseNow } from '../stored-schedules/database-now.repository';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { TaskError } from '../problems/task-error';
import { InstanceAlignmentService } from '../recurring-generation/instance-alignment.service';
import { InstanceGenerationService } from '../recurring-generation/instance-generation.service';
import { scheduleChanged } from './schedule-changed';
import type { UpdateScheduleDto } from './schedule.dto';
import { SCHEDULE_TRANSITIONS, type ScheduleCommand, statusOf } from '../stored-schedules/schedule-states';
import type { Schedule } from '../stored-schedules/schedule.entity';
import { ScheduleLimits } from './schedule-limits.service';
import {
  type ScheduleChange,
  SchedulesRepository,
  type ScheduleView,
} from '../stored-schedules/schedules.repository';

/**
 * Causes recorded with the instances that a command cancels. A resumption cancels only instances that its
 * pause has not cancelled yet.
 */
const CAUSES = { update: 'Update', pause: 'Pause', resume: 'Pause', remove: 'Removal' } as const;
/** Members that decide when a schedule is due. */
const RECURRENCE = ['schedule', 'timeZone', 'startDate', 'endDate', 'calendarId'] as const;
/** Members that are copied to its instances. */
const COPIED = ['name', 'template'] as const;

/**
 * Result of an attempt that found too many missing instances for one transaction. The attempt generates and
 * commits a part of them; then the change is attempted again.
 */
const BEHIND = Symbol('behind');

interface Locked {
  readonly schedule: Schedule;
  /** Database time after the lock was acquired; the instant of the change. */
  readonly now: Date;
  /**
   * Whether an earlier attempt at this request, whose commit was not confirmed, may have changed the
   * schedule.
   */
  readonly mayBeChanged: boolean;
}

interface Change {
  readonly command: ScheduleCommand;
  readonly change: ScheduleChange;
  readonly changedBy: Actor;
}

/**
 * Updates, pauses, resumes and removes schedules. The lock of the schedule's row serialises changes and
 * generation. One transaction stores the schedule, its event and the changes of its first 5,000 future
 * instances; further instances are changed in steps.
 */
@Injectable()
export class ScheduleLifecycleService {
  constructor(
    private readonly schedules: SchedulesRepository,
    private readonly limits: ScheduleLimits,
    private readonly generation: InstanceGenerationService,
    private readonly alignment: InstanceAlignmentService,
    private readonly outbound: OutboundProxy,
    private readonly scope: CallerScope,
  ) {}

  /**
   * Changes the given members. An update that changes nothing stores no event and does not check `If-Match`,
   * because it may be a retry.
   * @throws {TaskError} schedule-not-found, facility-not-permitted, schedule-removed, schedule-changed,
   * outcome-unknown, schedule-changed-too-often, too-many-changes-at-once, changes-busy; for the resulting
   * schedule: schedule-ended, schedule-not-evaluable, instant-out-of-range, schedule-ends-before-start,
   * schedule-too-frequent, calendar-unknown, instance-limit-reached, schedule-limit-reached
   */
  async update(
    scheduleId: string,
    request: UpdateScheduleDto,
    ifMatch: EntityTags | null,
    caller: Caller,
  ): Promise<ScheduleView> {
    return this.changeInSlot(scheduleId, caller, async (manager, locked) => {
      const { schedule, mayBeChanged } = locked;
      if (!SCHEDULE_TRANSITIONS[statusOf(schedule)].update) throw new TaskError('schedule-removed');
      const change = differences(schedule, request);
      if (Object.keys(change).length === 0) return schedule;
      if (!mayWrite({ ifMatch, ifNoneMatch: null }, String(schedule.revision)))
        throw mayBeChanged
          ? new TaskError('outcome-unknown', { retryAfterSeconds: 1 })
          : new TaskError('schedule-changed');
      if (touches(change, RECURRENCE)) await this.limits.requireUpdate(manager, locked, { change, caller });
      return this.change(manager, locked, { command: 'update', change, changedBy: actorOf(caller) });
    });
  }

  /**
   * Pauses, resumes or removes a schedule. A repeated command changes nothing and stores no event.
   * @throws {TaskError} schedule-not-found, facility-not-permitted, schedule-removed,
   * schedule-changed-too-often, too-many-changes-at-once, changes-busy; for `resume`: schedule-limit-reached,
   * instance-limit-reached
   */
  async command(
    scheduleId: string,
    command: Exclude<ScheduleCommand, 'update'>,
    caller: Caller,
  ): Promise<ScheduleView> {
    return this.changeInSlot(scheduleId, caller, async (manager, locked) => {
      const { schedule } = locked;
      const before = statusOf(schedule);
      const status = SCHEDULE_TRANSITIONS[before][command];
      if (status === undefined) throw new TaskError('schedule-removed');
      if (status === before || status === 'Ended') return schedule;
      if (command === 'resume') await this.limits.requireResumable(manager, schedule, locked.now);
      const change = command === 'remove' ? { status, removedAt: locked.now } : { status };
      return this.change(manager, locked, { command, change, changedBy: actorOf(caller) });
    });
  }

  private async changeInSlot(
    scheduleId: string,
    caller: Caller,
    work: (manager: EntityManager, locked: Locked) => Promise<Schedule | typeof BEHIND>,
  ): Promise<ScheduleView> {
    const scope = await this.scope.of(caller, MANAGERS);
    return this.limits.withSlot(scheduleId, { caller, scope }, async () => {
      for (;;) {
        const shown = await this.attempt(scheduleId, scope, work);
        if (shown === null) throw new TaskError('schedule-not-found');
        if (shown !== BEHIND) return shown;
      }
    });
  }

  private attempt(
    scheduleId: string,
    scope: FacilityScope,
    work: (manager: EntityManager, locked: Locked) => Promise<Schedule | typeof BEHIND>,
  ): Promise<ScheduleView | typeof BEHIND | null> {
    return this.outbound.transaction<ScheduleView | typeof BEHIND | null>(async (manager, unconfirmed) => {
      const schedule = await this.schedules.findAndLock(manager, scheduleId);
      if (!schedule) throw new TaskError('schedule-not-found');
      if (!isWithinScope(scope, schedule.facilityId)) throw new TaskError('facility-not-permitted');
      const now = await databaseNow(manager);
      const mayBeChanged = unconfirmed !== null && unconfirmed !== BEHIND;
      if ((await work(manager, { schedule, now, mayBeChanged })) === BEHIND) return BEHIND;
      return this.schedules.show(scheduleId, manager);
    });
  }

  private async change(
    manager: EntityManager,
    { schedule, now }: Locked,
    { command, change, changedBy }: Change,
  ): Promise<Schedule | typeof BEHIND> {
    const counted = this.limits.countChange(schedule, now, command);
    // Occurrences before the change belong to the old settings.
    const wasGenerated = schedule.status === 'Active' && schedule.endedAt === null;
    const { isComplete, isEvaluable } = wasGenerated
      ? await this.generation.catchUp(manager, schedule, now)
      : { isComplete: true, isEvaluable: true };
    if (!isComplete) return BEHIND;
    const changed = await this.store(manager, schedule, { ...change, ...counted });
    const isRecurring = command !== 'update' || touches(change, RECURRENCE);
    if (isRecurring && changed.status === 'Active')
      await this.generation.regenerate(manager, changed, { now, isEvaluable });
    const cancelledInstances =
      isRecurring || touches(change, COPIED)
        ? await this.alignment.begin(manager, {
            schedule: changed,
            cause: CAUSES[command],
            actor: changedBy,
            changedAt: now,
            onlyCopies: !isRecurring,
          })
        : 0;
    const event = scheduleChanged(command, changed, { changedAt: now, changedBy, cancelledInstances });
    await this.outbound.store(manager, [event]);
    return changed;
  }

  private async store(
    manager: EntityManager,
    schedule: Schedule,
    change: Parameters<SchedulesRepository['change']>[2],
  ): Promise<Schedule> {
    try {
      return await this.schedules.change(manager, schedule, change);
    } catch (error) {
      if (isForeignKeyViolation(error)) throw new TaskError('calendar-unknown', { cause: error });
      throw error;
    }
  }
}

function touches(change: ScheduleChange, members: readonly (keyof ScheduleChange)[]): boolean {
  return members.some((member) => change[member] !== undefined);
}

/** Returns the members of the request that differ from the schedule. */
function differences(schedule: Schedule, { template, ...request }: UpdateScheduleDto): ScheduleChange {
  const wanted = {
    ...request,
    ...(template === undefined ? {} : { template: template === null ? null : JSON.stringify(template) }),
  };
  const isOther = ([name, value]: [string, unknown]): boolean =>
    value !== undefined && value !== schedule[name as keyof Schedule];
  return Object.fromEntries(Object.entries(wanted).filter(isOther));
}
