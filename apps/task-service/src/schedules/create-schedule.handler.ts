import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { actorOf } from '../access/actor';
import { CallerScope } from '../access/caller-scope.service';
import { TaskError } from '../problems/task-error';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { scheduleCreated } from './creation-event';
import { findCreatedSchedule } from './find-created-schedule.query';
import { insertSchedule } from './insert-schedule.query';
import type { NewSchedule } from './insert-schedule.query';
import { requestDigest } from './schedule';
import type { Schedule } from './schedule';
import type { CreateScheduleDto } from './schedule.dto';
import { startInstant } from './start-date';
import { timeZone } from './time-zone';

/** Persists a schedule and its ScheduleCreatedEvent in one transaction, a statement of its own. Source: task messaging spec, operations. */
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
    const event = this.outbound.prepare(scheduleCreated({ ...schedule, createdBy: actorOf(caller) }));
    return this.outbound.statement([event], async (dataSource) => {
      const created = await insertSchedule(dataSource, schedule, event);
      if (created) return created;
      // Who holds the id or the key has committed: the insert waited for that.
      const earlier = await findCreatedSchedule(dataSource, schedule);
      if (earlier?.requestDigest !== schedule.requestDigest) throw new TaskError('idempotency-key-reused');
      return earlier.schedule;
    });
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
