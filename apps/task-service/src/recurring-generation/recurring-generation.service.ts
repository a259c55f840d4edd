import { Injectable } from '@nestjs/common';
import { ScheduledMessageEvent, TaskInstanceGenerationRequested } from '@platform/contracts';
import type { ScheduleRecurringTaskInstanceGenerationSucceeded } from '@platform/contracts';
import type { EntityManager } from 'typeorm';
import { runAfterCommit } from '../outbound/after-commit.service';
import { outboundEvent } from '../outbound/outbound-event';
import type { OutboundEvent } from '../outbound/outbound-event';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { SchedulerService } from '../scheduler/scheduler.service';
import { JOB_NAME, TRIGGER_GROUP, triggerName } from '../scheduler/trigger.entity';
import type { Trigger } from '../scheduler/trigger.entity';
import { TriggersRepository } from '../scheduler/triggers.repository';
import type { TriggerPlan } from '../scheduler/triggers.repository';
import { nextOccurrence } from '../schedules/occurrences';
import { generationSettings } from './generation-settings';
import type { GenerationRequest } from './generation-settings';

/** Configures recurring generation of a facility: its trigger, and the ScheduledMessageEvent that tells of it. */
@Injectable()
export class RecurringGenerationService {
  constructor(
    private readonly triggers: TriggersRepository,
    private readonly outbound: OutboundProxy,
    private readonly scheduler: SchedulerService,
  ) {}

  /** As `scheduleAll`, for one facility; gives the response to its request. */
  async schedule(
    manager: EntityManager,
    { facilityId, ...settings }: GenerationRequest,
    conversationId: string | null,
  ): Promise<ScheduleRecurringTaskInstanceGenerationSucceeded> {
    const { created, found, changed } = await this.scheduleAll(
      manager,
      [facilityId],
      settings,
      conversationId,
    );
    const [plan] = [...created, ...changed, ...found];
    if (plan === undefined) throw new Error('the trigger was neither created nor found');
    return {
      facilityId,
      scheduleName: triggerName(facilityId),
      scheduleGroup: TRIGGER_GROUP,
      schedule: plan.schedule,
      timeZone: plan.timeZone,
      nextFireTimeUtc: plan.nextFireAt.toISOString(),
      replaced: created.length === 0,
    };
  }

  /** Creates or replaces the facilities' triggers, by a handful of statements; repeating it changes nothing.
   *  @param facilityIds each once, ascending, so that transactions with common facilities lock them in the same order
   *  @param conversationId that of the message that asked for it
   *  @throws {GenerationRefused} for a request that cannot be carried out */
  async scheduleAll(
    manager: EntityManager,
    facilityIds: readonly number[],
    request: Omit<GenerationRequest, 'facilityId'>,
    conversationId: string | null,
  ): Promise<{ created: TriggerPlan[]; found: Trigger[]; changed: TriggerPlan[] }> {
    const planner = new Planner(await this.triggers.databaseNow(manager));
    const plans = facilityIds.map((facilityId) => planner.plan({ ...request, facilityId }, null));
    const { created, found } = await this.triggers.insertOrLock(manager, plans);
    const replacements = found.map((trigger) => ({
      trigger,
      plan: planner.plan({ ...request, facilityId: trigger.facilityId }, trigger),
    }));
    // An overdue occurrence of an unchanged trigger is still to fire: it must not be skipped.
    const changed = replacements.filter(({ trigger, plan }) => isChanged(trigger, plan));
    const changedPlans = changed.map(({ plan }) => plan);
    await this.triggers.reschedule(manager, changedPlans);
    const newCrons = changed.filter(({ trigger, plan }) => plan.schedule !== trigger.schedule);
    await this.outbound.store(
      manager,
      [...created, ...newCrons.map(({ plan }) => plan)].map((plan) => scheduled(plan, conversationId)),
    );
    runAfterCommit(manager, 'scheduler', () => {
      this.scheduler.wake();
    });
    return { created, found, changed: changedPlans };
  }
}

/** Plans triggers as of one instant. Facilities with the same cron and zone, the rule within a request, are computed once. */
class Planner {
  private readonly nextFires = new Map<string, Date>();

  constructor(private readonly now: Date) {}

  plan(request: GenerationRequest, existing: Trigger | null): TriggerPlan {
    const { schedule, timeZone, expression, zone } = generationSettings(request, existing);
    const key = JSON.stringify([schedule, timeZone]);
    const nextFireAt = this.nextFires.get(key) ?? nextOccurrence(expression, zone, this.now);
    this.nextFires.set(key, nextFireAt);
    return { facilityId: request.facilityId, schedule, timeZone, nextFireAt };
  }
}

function isChanged(trigger: Trigger, { schedule, timeZone }: TriggerPlan): boolean {
  return schedule !== trigger.schedule || timeZone !== trigger.timeZone || trigger.state === 'ERROR';
}

function scheduled({ facilityId, schedule }: TriggerPlan, conversationId: string | null): OutboundEvent {
  return outboundEvent(
    ScheduledMessageEvent,
    {
      subsystemName: 'TaskService',
      messageName: TaskInstanceGenerationRequested.name,
      description: `${JOB_NAME} of facility ${String(facilityId)}`,
      schedule,
    },
    facilityId,
    conversationId === null ? {} : { conversationId },
  );
}
