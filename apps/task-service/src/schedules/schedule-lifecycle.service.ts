import { Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import type { Actor } from '@platform/contracts';
import { isForeignKeyViolation } from '@platform/database';
import { type EntityTags, mayWrite } from '@platform/service-defaults';
import type { EntityManager } from 'typeorm';
import { actorOf, CallerScope, type FacilityScope, isWithinScope } from '../access/caller-scope.service';
import { MANAGERS } from '../access/route-personas';
import { databaseNow } from '../instances/database-now.repository';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { TaskError } from '../problems/task-problem.filter';
import { InstanceAlignmentService } from '../recurring-generation/instance-alignment.service';
import { InstanceGenerationService } from '../recurring-generation/instance-generation.service';
import { scheduleChanged } from './schedule-changed';
import type { UpdateScheduleDto } from './schedule.dto';
import { type Schedule, SCHEDULE_TRANSITIONS, type ScheduleCommand, statusOf } from './schedule.entity';
import { ScheduleLimits } from './schedule-limits.service';
import { type ScheduleChange, SchedulesRepository, type ShownSchedule } from './schedules.repository';

/** Why instances to come are cancelled. A resumption cancels only what its pause had left. */
const CAUSES = { update: 'Update', pause: 'Pause', resume: 'Pause', remove: 'Removal' } as const;
/** What decides when a schedule is due. */
const RECURRENCE = ['schedule', 'timeZone', 'startDate', 'endDate', 'calendarId'] as const;
/** What its instances have from it. */
const COPIED = ['name', 'template'] as const;

/**
 * Generation is too far behind for one transaction. This one committed a part of it; the change is tried
 * again.
 */
const BEHIND = Symbol('behind');

interface Locked {
  readonly schedule: Schedule;
  /** The database's time once the lock was there: the one instant of the change. */
  readonly now: Date;
  /** By an earlier attempt at the same request, whose commit was not confirmed. */
  readonly mayBeChanged: boolean;
}

interface Change {
  readonly command: ScheduleCommand;
  readonly change: ScheduleChange;
  readonly changedBy: Actor;
}

/**
 * Updates, pauses, resumes and removes schedules. The schedule's row lock makes changes and generation take
 * turns. The schedule and the event change in one transaction, and so do its instances to come unless there
 * are thousands: those follow in steps.
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

  /** Changes what is given. An update that changes nothing has no event, and `If-Match` is not checked: it may be a repetition.
   *  @throws {TaskError} schedule-not-found, facility-not-permitted, schedule-removed, schedule-changed, outcome-unknown, schedule-changed-too-often,
   *    too-many-changes-at-once, changes-busy, and for what the schedule would be schedule-ended, schedule-not-evaluable,
   *    instant-out-of-range, schedule-ends-before-start,
   *    schedule-too-frequent, calendar-unknown, instance-limit-reached, schedule-limit-reached */
  async update(
    scheduleId: string,
    request: UpdateScheduleDto,
    ifMatch: EntityTags | null,
    caller: Caller,
  ): Promise<ShownSchedule> {
    return this.inTurn(scheduleId, caller, async (manager, locked) => {
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

  /** Repeating it changes nothing and has no event.
   *  @throws {TaskError} schedule-not-found, facility-not-permitted, schedule-removed, schedule-changed-too-often,
   *    too-many-changes-at-once, changes-busy, and on resuming schedule-limit-reached, instance-limit-reached */
  async command(
    scheduleId: string,
    command: Exclude<ScheduleCommand, 'update'>,
    caller: Caller,
  ): Promise<ShownSchedule> {
    return this.inTurn(scheduleId, caller, async (manager, locked) => {
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

  private async inTurn(
    scheduleId: string,
    caller: Caller,
    work: (manager: EntityManager, locked: Locked) => Promise<Schedule | typeof BEHIND>,
  ): Promise<ShownSchedule> {
    const scope = await this.scope.of(caller, MANAGERS);
    return this.limits.inTurn(scheduleId, { caller, scope }, async () => {
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
  ): Promise<ShownSchedule | typeof BEHIND | null> {
    return this.outbound.transaction<ShownSchedule | typeof BEHIND | null>(async (manager, unconfirmed) => {
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
    // What came due before the change came due by the schedule as it was.
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

/** The members of the request that are not as they were. */
function differences(schedule: Schedule, { template, ...request }: UpdateScheduleDto): ScheduleChange {
  const wanted = {
    ...request,
    ...(template === undefined ? {} : { template: template === null ? null : JSON.stringify(template) }),
  };
  const isOther = ([name, value]: [string, unknown]): boolean =>
    value !== undefined && value !== schedule[name as keyof Schedule];
  return Object.fromEntries(Object.entries(wanted).filter(isOther));
}
