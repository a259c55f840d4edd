import { Inject, Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import type { Actor } from '@platform/contracts';
import { isForeignKeyViolation } from '@platform/database';
import { type EntityTags, mayWrite } from '@platform/service-defaults';
import type { EntityManager } from 'typeorm';
import { actorOf, CallerScope, isWithinScope } from '../access/caller-scope.service';
import { TASK_CONFIG, type TaskServiceConfig } from '../config';
import { InstancesRepository } from '../instances/instances.repository';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { TaskError } from '../problems/task-problem.filter';
import { InstanceGenerationService } from '../recurring-generation/instance-generation.service';
import { scheduleChanged } from './schedule-changed';
import type { UpdateScheduleDto } from './schedule.dto';
import { type Schedule, SCHEDULE_TRANSITIONS, type ScheduleCommand } from './schedule.entity';
import { checkRecurrence, minIntervalMinutes } from './recurrence';
import { type ScheduleChange, SchedulesRepository } from './schedules.repository';

/** Why instances to come are cancelled. */
const CAUSES = { update: 'Update', pause: 'Pause', resume: 'Pause', remove: 'Removal' } as const;

interface Locked {
  readonly schedule: Schedule;
  readonly now: Date;
}

/** Updates, pauses, resumes and removes schedules. The schedule's row lock makes changes and generation take turns; the instances to come
 *  and the event change in the same transaction. */
@Injectable()
export class ScheduleLifecycleService {
  constructor(
    private readonly schedules: SchedulesRepository,
    private readonly instances: InstancesRepository,
    private readonly generation: InstanceGenerationService,
    private readonly outbound: OutboundProxy,
    private readonly scope: CallerScope,
    @Inject(TASK_CONFIG) private readonly config: TaskServiceConfig,
  ) {}

  /** Changes what is given. An update that changes nothing has no event and fails no condition: a repetition, perhaps.
   *  @throws {TaskError} schedule-not-found, facility-not-permitted, schedule-removed, schedule-changed, and for what the schedule would be
   *    instant-out-of-range, schedule-ends-before-start, schedule-too-frequent, calendar-unknown */
  async update(
    scheduleId: string,
    request: UpdateScheduleDto,
    ifMatch: EntityTags | null,
    caller: Caller,
  ): Promise<Schedule> {
    return this.inTurn(scheduleId, caller, async (manager, locked) => {
      const { schedule } = locked;
      if (!SCHEDULE_TRANSITIONS[schedule.status].update) throw new TaskError('schedule-removed');
      const change = differences(schedule, request);
      if (Object.keys(change).length === 0) return schedule;
      if (!mayWrite({ ifMatch, ifNoneMatch: null }, String(schedule.revision)))
        throw new TaskError('schedule-changed');
      // A schedule made by somebody who may have it more often keeps that through changes of other things.
      const minutes = change.schedule === undefined ? 1 : minIntervalMinutes(caller, this.config);
      checkRecurrence({ ...schedule, ...change }, minutes);
      return this.change(manager, locked, { command: 'update', change, changedBy: actorOf(caller) });
    });
  }

  /** Repeating it changes nothing and has no event.
   *  @throws {TaskError} schedule-not-found, facility-not-permitted, schedule-removed, schedule-limit-reached */
  async command(
    scheduleId: string,
    command: Exclude<ScheduleCommand, 'update'>,
    caller: Caller,
  ): Promise<Schedule> {
    return this.inTurn(scheduleId, caller, async (manager, locked) => {
      const { status: before, facilityId } = locked.schedule;
      const status = SCHEDULE_TRANSITIONS[before][command];
      if (status === undefined) throw new TaskError('schedule-removed');
      if (status === before) return locked.schedule;
      const limit = this.config.SCHEDULES_PER_FACILITY;
      if (status === 'Active' && (await this.schedules.countActive(manager, facilityId, limit)) >= limit)
        throw new TaskError('schedule-limit-reached');
      return this.change(manager, locked, { command, change: { status }, changedBy: actorOf(caller) });
    });
  }

  private async inTurn(
    scheduleId: string,
    caller: Caller,
    work: (manager: EntityManager, locked: Locked) => Promise<Schedule>,
  ): Promise<Schedule> {
    const scope = await this.scope.of(caller);
    return this.outbound.transaction(async (manager) => {
      const locked = await this.schedules.findAndLock(manager, scheduleId);
      if (!locked) throw new TaskError('schedule-not-found');
      if (!isWithinScope(scope, locked.schedule.facilityId)) throw new TaskError('facility-not-permitted');
      return work(manager, locked);
    });
  }

  private async change(
    manager: EntityManager,
    { schedule, now }: Locked,
    { command, change, changedBy }: { command: ScheduleCommand; change: ScheduleChange; changedBy: Actor },
  ): Promise<Schedule> {
    // What came due before the change came due by the schedule as it was.
    if (schedule.status === 'Active') await this.generation.catchUp(manager, schedule);
    const changed = await this.store(manager, schedule, change);
    const release = { cause: CAUSES[command], actor: changedBy };
    const cancelledInstances = await this.generation.realign(manager, schedule, release);
    if (command === 'update') await this.instances.copyFromSchedule(manager, schedule.scheduleId);
    const event = scheduleChanged(command, changed, { changedAt: now, changedBy, cancelledInstances });
    await this.outbound.store(manager, [event]);
    return changed;
  }

  private async store(manager: EntityManager, schedule: Schedule, change: ScheduleChange): Promise<Schedule> {
    try {
      return await this.schedules.change(manager, schedule, change);
    } catch (error) {
      if (isForeignKeyViolation(error)) throw new TaskError('calendar-unknown', { cause: error });
      throw error;
    }
  }
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
