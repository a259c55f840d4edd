import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { ScheduleCreatedEvent } from '@platform/contracts';
import type { EntityManager } from 'typeorm';
import { actorOf } from '../access/actor';
import { CallerScope } from '../access/caller-scope.service';
import { TaskError } from '../access/task-error';
import { outboundEvent } from '../outbound/outbound-event';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { findCreatedSchedule } from './find-created-schedule.query';
import { insertSchedule } from './insert-schedule.query';
import type { NewSchedule } from './insert-schedule.query';
import { requestDigest } from './schedule';
import type { Schedule } from './schedule';
import type { CreateScheduleDto } from './schedule.dto';
import { startInstant } from './start-date';
import { timeZone } from './time-zone';

/** Persists a schedule and its ScheduleCreatedEvent in one transaction. Source: task messaging spec, operations. */
@Injectable()
export class CreateSchedule {
  constructor(
    private readonly outbound: OutboundProxy,
    private readonly scope: CallerScope,
  ) {}

  /** @param idempotencyKey the caller's own; a repetition with the same request gives the schedule of the first
   *  @throws {TaskError} facility-not-permitted, idempotency-key-reused */
  async execute(
    request: CreateScheduleDto,
    caller: Caller,
    idempotencyKey: string | null,
  ): Promise<Schedule> {
    await this.scope.require(caller, request.facilityId);
    // One id for all attempts: a commit whose confirmation was lost is recognised by it and not stored twice.
    const schedule = newSchedule(randomUUID(), request, caller, idempotencyKey);
    return this.outbound.transaction((manager) => this.store(manager, schedule));
  }

  private async store(manager: EntityManager, schedule: NewSchedule): Promise<Schedule> {
    const inserted = await insertSchedule(manager, schedule);
    if (inserted) {
      await this.outbound.store(manager, [scheduleCreated(inserted)]);
      return inserted;
    }
    const earlier = await findCreatedSchedule(manager, schedule);
    if (earlier?.requestDigest !== schedule.requestDigest) throw new TaskError('idempotency-key-reused');
    return earlier.schedule;
  }
}

function newSchedule(
  scheduleId: string,
  request: CreateScheduleDto,
  caller: Caller,
  idempotencyKey: string | null,
): NewSchedule {
  const { facilityId, name, description, schedule, startDate, template } = request;
  return {
    scheduleId,
    facilityId,
    name,
    description,
    schedule,
    timeZone: request.timeZone,
    startDate,
    startsAt: startDate === null ? null : startInstant(startDate, timeZone(request.timeZone)),
    template: template === null ? null : JSON.stringify(template),
    createdBy: { ...actorOf(caller), subject: caller.subject },
    idempotencyKey,
    requestDigest: requestDigest(request),
  };
}

function scheduleCreated(created: Schedule): ReturnType<typeof outboundEvent> {
  const { scheduleId, facilityId, name, schedule, createdAt, createdBy } = created;
  return outboundEvent(
    ScheduleCreatedEvent,
    {
      scheduleId,
      facilityId,
      name,
      schedule,
      timeZone: created.timeZone,
      createdAtUtc: createdAt.toISOString(),
      createdBy,
    },
    facilityId,
  );
}
