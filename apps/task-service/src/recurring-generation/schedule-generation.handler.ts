import { Injectable } from '@nestjs/common';
import { ScheduledMessageEvent, TaskInstanceGenerationRequested } from '@platform/contracts';
import type { ScheduleRecurringTaskInstanceGenerationSucceeded } from '@platform/contracts';
import type { EntityManager } from 'typeorm';
import { runAfterCommit } from '../outbound/after-commit.service';
import { outboundEvent } from '../outbound/outbound-event';
import type { OutboundEvent } from '../outbound/outbound-event';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { insertOrLockTrigger } from '../scheduler/insert-or-lock-trigger.query';
import { rescheduleTrigger } from '../scheduler/reschedule-trigger.query';
import { SchedulerService } from '../scheduler/scheduler.service';
import type { Trigger } from '../scheduler/trigger';
import { nextOccurrence } from '../schedules/occurrences';
import { databaseNow } from './database-now.query';
import { generationSettings } from './generation-settings';
import type { GenerationRequest, GenerationSettings } from './generation-settings';

/** Configures recurring generation of a facility: its trigger, and the ScheduledMessageEvent that tells of it. */
@Injectable()
export class ScheduleGeneration {
  constructor(
    private readonly outbound: OutboundProxy,
    private readonly scheduler: SchedulerService,
  ) {}

  /** Repeating a request changes nothing. `conversationId` is that of the message that asked for it. @throws {GenerationRefused} for a request that cannot be carried out */
  async execute(
    manager: EntityManager,
    request: GenerationRequest,
    conversationId: string | null,
  ): Promise<ScheduleRecurringTaskInstanceGenerationSucceeded> {
    const now = await databaseNow(manager);
    const { trigger: found, created } = await insertOrLockTrigger(
      manager,
      plannedTrigger(request.facilityId, generationSettings(request, null), now),
    );
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
    const changed = { ...existing, ...plannedTrigger(existing.facilityId, settings, now) };
    await rescheduleTrigger(manager, changed);
    return changed;
  }
}

function plannedTrigger(
  facilityId: number,
  { schedule, timeZone, expression, zone }: GenerationSettings,
  now: Date,
): Pick<Trigger, 'facilityId' | 'schedule' | 'timeZone' | 'nextFireAt'> {
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
