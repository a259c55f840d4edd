import { Inject, Injectable } from '@nestjs/common';
import {
  ScheduledMessageEvent,
  type ScheduleRecurringTaskInstanceGenerationSucceeded,
  TaskInstanceGenerationRequested,
} from '@platform/contracts';
import { DAY_MS, SECOND_MS } from '@platform/time';
import type { EntityManager } from 'typeorm';
import { TASK_CONFIG, type TaskServiceConfig } from '../config';
import { runAfterCommit } from '../outbound/after-commit.service';
import { outboundEvent, type OutboundEvent } from '../outbound/outbound-event';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { generationRequested } from '../scheduler/due-fire';
import { SchedulerService } from '../scheduler/scheduler.service';
import {
  jitterSecondsOf,
  JOB_NAME,
  type Trigger,
  TRIGGER_GROUP,
  triggerName,
} from '../scheduler/trigger.entity';
import { type TriggerPlan, TriggersRepository } from '../scheduler/triggers.repository';
import { nextOccurrence } from '../schedules/occurrences';
import { type GenerationRequest, generationSettings } from './generation-settings';

/** Configures recurring generation of a facility: its trigger, and the ScheduledMessageEvent that tells of it. */
@Injectable()
export class GenerationTriggersService {
  constructor(
    private readonly triggers: TriggersRepository,
    private readonly outbound: OutboundProxy,
    private readonly scheduler: SchedulerService,
    @Inject(TASK_CONFIG) private readonly config: PlannerConfig,
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
    const planner = new Planner(await this.triggers.databaseNow(manager), this.config);
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
    const isRare = (plan: TriggerPlan): boolean => planner.isRare(plan);
    await this.outbound.store(manager, [
      ...[...created, ...newCrons.map(({ plan }) => plan)].map((plan) => scheduled(plan, conversationId)),
      // Its facility needs instances beyond the horizon, and before its first fire.
      ...[...created, ...changedPlans]
        .filter(isRare)
        .map(({ facilityId }) => generationRequested(facilityId, { firedAt: planner.now })),
    ]);
    runAfterCommit(manager, 'scheduler', () => {
      this.scheduler.wake();
    });
    return { created, found, changed: changedPlans };
  }
}

type PlannerConfig = Pick<TaskServiceConfig, 'TRIGGER_JITTER_SECONDS' | 'GENERATION_HORIZON_DAYS'>;

/** Plans triggers as of one instant. Facilities with the same cron and zone, the rule within a request, are computed once. */
class Planner {
  private readonly occurrences = new Map<string, { recent: Date; next: Date; second: Date }>();

  constructor(
    readonly now: Date,
    private readonly config: PlannerConfig,
  ) {}

  /** A trigger for which nobody asked for an expression does not fire with all the others at the default one. */
  plan(request: GenerationRequest, existing: Trigger | null): TriggerPlan {
    const { facilityId } = request;
    const { schedule, timeZone } = generationSettings(request, existing);
    const isAsked = request.schedule !== undefined;
    const share = existing?.jitterSeconds ?? jitterSecondsOf(facilityId, this.config.TRIGGER_JITTER_SECONDS);
    const jitterSeconds = isAsked ? 0 : share;
    const later = (instant: Date): Date => new Date(instant.getTime() + jitterSeconds * SECOND_MS);
    const { recent, next } = this.occurrencesOf({ facilityId, schedule, timeZone });
    const nextFireAt = later(recent) > this.now ? later(recent) : later(next);
    return { facilityId, schedule, timeZone, nextFireAt, jitterSeconds };
  }

  /** The second fire from now comes after the horizon of generation. */
  isRare(plan: TriggerPlan): boolean {
    const horizonMs = this.now.getTime() + this.config.GENERATION_HORIZON_DAYS * DAY_MS;
    return this.occurrencesOf(plan).second.getTime() > horizonMs;
  }

  /** The first occurrences after now, and the first one after now less the jitter's span. */
  private occurrencesOf(settings: GenerationRequest): { recent: Date; next: Date; second: Date } {
    const { schedule, timeZone, expression, zone } = generationSettings(settings, null);
    const key = JSON.stringify([schedule, timeZone]);
    let found = this.occurrences.get(key);
    if (!found) {
      const spanMs = this.config.TRIGGER_JITTER_SECONDS * SECOND_MS;
      const recent = nextOccurrence(expression, zone, new Date(this.now.getTime() - spanMs));
      const next = nextOccurrence(expression, zone, this.now);
      found = { recent, next, second: nextOccurrence(expression, zone, next) };
      this.occurrences.set(key, found);
    }
    return found;
  }
}

function isChanged(trigger: Trigger, { schedule, timeZone, jitterSeconds }: TriggerPlan): boolean {
  const isOther = schedule !== trigger.schedule || timeZone !== trigger.timeZone;
  return isOther || jitterSeconds !== trigger.jitterSeconds || trigger.state === 'ERROR';
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
