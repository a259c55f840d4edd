import { createHash, randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { ScheduleCreatedEvent } from '@platform/contracts';
import { isForeignKeyViolation } from '@platform/database';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { actorOf, CallerScope } from '../access/caller-scope.service';
import { MANAGERS } from '../access/route-personas';
import { outboundEvent, type OutboundEvent } from '../outbound/outbound-event';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { TaskError } from '../problems/task-error';
import type { CreateScheduleDto } from './schedule.dto';
import type { Schedule } from '../stored-schedules/schedule.entity';
import { ScheduleLimits } from './schedule-limits.service';
import {
  type NewSchedule,
  type ScheduleCreation,
  SchedulesRepository,
} from '../stored-schedules/schedules.repository';

@Injectable()
export class SchedulesService {
  constructor(
    private readonly schedules: SchedulesRepository,
    private readonly outbound: OutboundProxy,
    private readonly scope: CallerScope,
    @Inject(CLOCK) private readonly clock: Clock,
    private readonly limits: ScheduleLimits,
  ) {}

  /**
   * Stores a schedule and its ScheduleCreatedEvent in one transaction. Source: task messaging spec,
   * operations.
   * @param idempotencyKey chosen by the caller; repeating the same request returns the schedule of the first
   * @throws {TaskError} facility-not-permitted, idempotency-key-reused, schedule-limit-reached,
   * instance-limit-reached, schedules-created-too-often, too-many-changes-at-once, changes-busy,
   * calendar-unknown, schedule-ended, instant-out-of-range, schedule-ends-before-start, schedule-too-frequent
   */
  async create(request: CreateScheduleDto, caller: Caller, idempotencyKey: string | null): Promise<Schedule> {
    await this.scope.require(caller, MANAGERS, request.facilityId);
    // The id is the same for all attempts, so that a commit whose confirmation was lost is recognised and not
    // repeated.
    const text = { ...request, endDate: request.endDate ?? null, calendarId: request.calendarId ?? null };
    const recurrence = this.limits.recurrenceOfNew(text, caller);
    const { startsAt } = recurrence;
    const schedule = newSchedule({ scheduleId: randomUUID(), startsAt }, request, caller, idempotencyKey);
    const now = this.clock.now();
    const creation = { facilityId: request.facilityId, calendarId: text.calendarId, recurrence, now };
    return this.limits.withCreationSlot(creation, caller, async () => {
      try {
        await this.limits.requireNew(request.facilityId, recurrence, now);
      } catch (error) {
        return this.findEarlierOrThrow(schedule, () => error);
      }
      return this.storeOrFind(schedule, now);
    });
  }

  private storeOrFind(schedule: NewSchedule, now: Date): Promise<Schedule> {
    const event = this.outbound.prepare(scheduleCreated(schedule, now));
    return this.outbound.statement([event], async () => {
      const created = await this.store({ schedule, event });
      // The transaction with this id or key has committed, because the insert waited for it.
      return (
        created ?? this.findEarlierOrThrow(schedule, () => this.limits.refusalOfNew(schedule.facilityId))
      );
    });
  }

  /**
   * Returns the schedule that an earlier attempt at the same request stored.
   * @throws the result of `refusal` if there is none; {TaskError} idempotency-key-reused
   */
  private async findEarlierOrThrow(schedule: NewSchedule, refusal: () => unknown): Promise<Schedule> {
    const earlier = await this.schedules.findCreated(schedule);
    if (!earlier) throw await refusal();
    if (earlier.requestDigest !== schedule.requestDigest) throw new TaskError('idempotency-key-reused');
    return earlier;
  }

  private async store(creation: ScheduleCreation): Promise<Schedule | null> {
    try {
      return await this.schedules.insert(creation);
    } catch (error) {
      if (isForeignKeyViolation(error)) throw new TaskError('calendar-unknown', { cause: error });
      throw error;
    }
  }
}

function newSchedule(
  { scheduleId, startsAt }: Pick<NewSchedule, 'scheduleId' | 'startsAt'>,
  request: CreateScheduleDto,
  caller: Caller,
  idempotencyKey: string | null,
): NewSchedule {
  const { facilityId, name, description, schedule, startDate, template } = request;
  const { personId, name: personName, persona } = actorOf(caller);
  return {
    scheduleId,
    facilityId,
    name,
    description,
    schedule,
    timeZone: request.timeZone,
    startDate,
    endDate: request.endDate ?? null,
    calendarId: request.calendarId ?? null,
    startsAt,
    template: template === null ? null : JSON.stringify(template),
    createdBySubject: caller.subject,
    createdByPersonId: personId,
    createdByName: personName,
    createdByPersona: persona,
    idempotencyKey,
    requestDigest: requestDigest(request),
  };
}

/**
 * Returns the event of a schedule that is not stored yet.
 * @param createdAt by the replica's clock; the repository replaces it with the database's time
 */
function scheduleCreated(schedule: NewSchedule, createdAt: Date): OutboundEvent {
  const { scheduleId, facilityId, name, timeZone } = schedule;
  const createdBy = {
    personId: schedule.createdByPersonId,
    name: schedule.createdByName,
    persona: schedule.createdByPersona,
  };
  const createdAtUtc = createdAt.toISOString();
  return outboundEvent(
    ScheduleCreatedEvent,
    { scheduleId, facilityId, name, schedule: schedule.schedule, timeZone, createdAtUtc, createdBy },
    facilityId,
  );
}

/**
 * Returns the digest of a request. Members are in the order of the schema, so the caller's order does not
 * matter, except inside `template`.
 */
function requestDigest(request: CreateScheduleDto): string {
  return createHash('sha256').update(JSON.stringify(request)).digest('base64url');
}
