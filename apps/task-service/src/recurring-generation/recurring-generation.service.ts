import { Injectable } from '@nestjs/common';
import { ScheduledMessageEvent, TaskInstanceGenerationRequested } from '@platform/contracts';
import type { ScheduleRecurringTaskInstanceGenerationSucceeded } from '@platform/contracts';
import type { EntityManager } from 'typeorm';
import { runAfterCommit } from '../outbound/after-commit.service';
import { outboundEvent } from '../outbound/outbound-event';
import type { OutboundEvent } from '../outbound/outbound-event';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { SchedulerService } from '../scheduler/scheduler.service';
import type { Trigger } from '../scheduler/trigger.entity';
import { TriggersRepository } from '../scheduler/triggers.repository';
import type { TriggerPlan } from '../scheduler/triggers.repository';
import { nextOccurrence } from '../schedules/occurrences';
import { generationSettings } from './generation-settings';
import type { GenerationRequest, GenerationSettings } from './generation-settings';

/** Configures recurring generation of a facility: its trigger, and the ScheduledMessageEvent that tells of it. */
@Injectable()
export class RecurringGenerationService {
  constructor(
    private readonly triggers: TriggersRepository,
    private readonly outbound: OutboundProxy,
    private readonly scheduler: SchedulerService,
  ) {}

  /** Creates or replaces the facility's trigger; repeating a request changes nothing.
   *  @param conversationId that of the message that asked for it
   *  @throws {GenerationRefused} for a request that cannot be carried out */
  async schedule(
    manager: EntityManager,
    request: GenerationRequest,
    conversationId: string | null,
  ): Promise<ScheduleRecurringTaskInstanceGenerationSucceeded> {
    const now = await this.triggers.databaseNow(manager);
    const plan = planOf(request.facilityId, generationSettings(request, null), now);
    const { trigger: found, created } = await this.triggers.insertOrLock(manager, plan);
    const trigger = created ? found : await this.reschedule(manager, found, request, now);
    if (created || trigger.schedule !== found.schedule)
      await this.outbound.store(manager, [scheduled(trigger, conversationId)]);
    runAfterCommit(manager, 'scheduler', () => {
      this.scheduler.wake();
    });
    return {
      facilityId: trigger.facilityId,
      scheduleName: trigger.triggerName,
      scheduleGroup: trigger.triggerGroup,
      schedule: trigger.schedule,
      timeZone: trigger.timeZone,
      nextFireTimeUtc: trigger.nextFireAt.toISOString(),
      replaced: !created,
    };
  }

  private async reschedule(
    manager: EntityManager,
    existing: Trigger,
    request: GenerationRequest,
    now: Date,
  ): Promise<Trigger> {
    const settings = generationSettings(request, existing);
    const isUnchanged =
      settings.schedule === existing.schedule &&
      settings.timeZone === existing.timeZone &&
      existing.state !== 'ERROR';
    // An overdue occurrence of an unchanged trigger is still to fire: it must not be skipped.
    if (isUnchanged) return existing;
    return this.triggers.reschedule(manager, existing, planOf(existing.facilityId, settings, now));
  }
}

function planOf(
  facilityId: number,
  { schedule, timeZone, expression, zone }: GenerationSettings,
  now: Date,
): TriggerPlan {
  return { facilityId, schedule, timeZone, nextFireAt: nextOccurrence(expression, zone, now) };
}

function scheduled({ facilityId, jobName, schedule }: Trigger, conversationId: string | null): OutboundEvent {
  return outboundEvent(
    ScheduledMessageEvent,
    {
      subsystemName: 'TaskService',
      messageName: TaskInstanceGenerationRequested.name,
      description: `${jobName} of facility ${String(facilityId)}`,
      schedule,
    },
    facilityId,
    conversationId === null ? {} : { conversationId },
  );
}
