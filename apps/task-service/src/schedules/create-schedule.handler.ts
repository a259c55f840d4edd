import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Caller } from '@platform/access-tokens';
import { together } from '@platform/database';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import { actorOf } from '../access/actor';
import { CallerScope } from '../access/caller-scope.service';
import { TaskError } from '../problems/task-error';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { scheduleCreated } from './creation-event';
import { findCreatedSchedule } from './find-created-schedule.query';
import { insertSchedules } from './insert-schedules.query';
import type { NewSchedule, ScheduleCreation } from './insert-schedules.query';
import { requestDigest } from './schedule';
import type { Schedule } from './schedule';
import type { CreateScheduleDto } from './schedule.dto';
import { startInstant } from './start-date';
import { timeZone } from './time-zone';

/** Persists a schedule and its ScheduleCreatedEvent in one transaction, a statement of its own. Source: task messaging spec, operations. */
@Injectable()
export class CreateSchedule {
  /** Those that arrive together are stored by one statement. */
  private readonly insert: (creation: ScheduleCreation) => Promise<Schedule | null>;

  constructor(
    @InjectDataSource() dataSource: DataSource,
    private readonly outbound: OutboundProxy,
    private readonly scope: CallerScope,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {
    this.insert = together((creations) => insertSchedules(dataSource, creations));
  }

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
    const event = this.outbound.prepare(
      scheduleCreated({ ...schedule, createdBy: actorOf(caller), createdAt: this.clock.now() }),
    );
    return this.outbound.statement([event], async (dataSource) => {
      const created = await this.insert({ schedule, event });
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
