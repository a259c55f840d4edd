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
import { FacilityActivityRepository, type KnownActivity } from '../scheduler/facility-activity.repository';
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
import { GenerationRefused, type GenerationRequest, generationSettings } from './generation-settings';

/**
 * Configures recurring generation of a facility: its trigger, and the ScheduledMessageEvent that tells of it.
 */
@Injectable()
export class GenerationTriggersService {
  constructor(
    private readonly triggers: TriggersRepository,
    private readonly activity: FacilityActivityRepository,
    private readonly outbound: OutboundProxy,
    private readonly scheduler: SchedulerService,
    @Inject(TASK_CONFIG) private readonly config: PlannerConfig,
  ) {}

  /**
   * Creates or replaces the facility's trigger; repeating it changes nothing. A pause outlives it, and the
   * response tells of it.
   * @param conversationId that of the message that asked for it
   * @throws {GenerationRefused} for a request that cannot be carried out
   */
  async schedule(
    manager: EntityManager,
    { facilityId, ...request }: GenerationRequest,
    conversationId: string | null,
  ): Promise<ScheduleRecurringTaskInstanceGenerationSucceeded> {
    const { now, inactive, remembered } = await this.activity.find(manager, [facilityId]);
    const planner = new Planner(now, this.config);
    const planOf: PlanOf = (existing) => planner.plan({ ...request, facilityId }, existing);
    const { created, found, changed } = await this.store(
      manager,
      new Map([[facilityId, { remembered: remembered.get(facilityId) ?? null, planOf }]]),
    );
    if (created.length > 0 && inactive.has(facilityId)) await this.activity.noteActive(manager, [facilityId]);
    await this.announce(manager, planner, { created, changed, inactive }, conversationId);
    const [plan] = [...created, ...changed.map((change) => change.plan), ...found];
    if (plan === undefined) throw new Error('the trigger was neither created nor found');
    return {
      facilityId,
      scheduleName: triggerName(facilityId),
      scheduleGroup: TRIGGER_GROUP,
      schedule: plan.schedule,
      timeZone: plan.timeZone,
      nextFireTimeUtc: plan.nextFireAt.toISOString(),
      replaced: created.length === 0,
      ...(plan.state === 'PAUSED' && { state: plan.state }),
    };
  }

  /**
   * Gives triggers to facilities that a business unit holds active from now on, by a handful of statements;
   * repeating it changes nothing. A facility gets back the settings and the pause that it had before it
   * became inactive. One whose settings cannot be evaluated any more holds up no other: its trigger is in
   * ERROR.
   * @param facilityIds each once, ascending, so that transactions with common facilities lock them in the
   * same order
   * @throws {GenerationRefused} for a request that cannot be carried out at any facility
   */
  async scheduleAll(
    manager: EntityManager,
    facilityIds: readonly number[],
    request: Omit<GenerationRequest, 'facilityId'>,
    conversationId: string | null,
  ): Promise<void> {
    const { now, inactive, remembered } = await this.activity.find(manager, facilityIds);
    const planner = new Planner(now, this.config);
    const wanted = facilityIds.map((facilityId) => {
      const planOf: PlanOf = (existing) => planner.planOrFail({ ...request, facilityId }, existing);
      return [facilityId, { remembered: remembered.get(facilityId) ?? null, planOf }] as const;
    });
    const { created, changed } = await this.store(manager, new Map(wanted));
    await this.activity.noteActive(
      manager,
      created.map(({ facilityId }) => facilityId),
    );
    await this.announce(manager, planner, { created, changed, inactive }, conversationId);
  }

  /** Inserts the triggers that are missing, and changes those whose plan is another one. */
  private async store(manager: EntityManager, wanted: Wanted): Promise<StoredTriggers> {
    const plans = [...wanted.values()].map(({ remembered, planOf }) => planOf(remembered));
    const { created, found } = await this.triggers.insertOrLock(manager, plans);
    const changed: StoredTriggers['changed'] = [];
    for (const trigger of found) {
      const plan = wanted.get(trigger.facilityId)?.planOf(trigger);
      if (plan !== undefined && plan.state !== 'ERROR' && isChanged(trigger, plan))
        changed.push({ trigger, plan });
    }
    await this.triggers.reschedule(
      manager,
      changed.map(({ plan }) => plan),
    );
    return { created, found, changed };
  }

  private async announce(
    manager: EntityManager,
    planner: Planner,
    { created, changed, inactive }: Omit<StoredTriggers, 'found'> & Pick<KnownActivity, 'inactive'>,
    conversationId: string | null,
  ): Promise<void> {
    const newCrons = changed.filter(({ trigger, plan }) => plan.schedule !== trigger.schedule);
    const scheduledPlans = [...created, ...newCrons.map(({ plan }) => plan)];
    // A facility that was inactive may have no instances to come, and one with a rare trigger needs them
    // before its first fire.
    const generates = [...created, ...changed.map(({ plan }) => plan)]
      .filter(({ state }) => state !== 'PAUSED' && state !== 'ERROR')
      .filter((plan) => inactive.has(plan.facilityId) || planner.isRare(plan));
    await this.outbound.store(manager, [
      ...scheduledPlans.map((plan) => scheduled(plan, conversationId)),
      ...generates.map(({ facilityId }) => generationRequested(facilityId, { requestedAt: planner.now })),
    ]);
    runAfterCommit(manager, 'scheduler', () => {
      this.scheduler.wake();
    });
  }
}

/**
 * The plan of a facility's trigger.
 * @param existing the trigger that it has, or had before it became inactive
 */
type PlanOf = (existing: ExistingTrigger | null) => TriggerPlan;
type ExistingTrigger = Pick<Trigger, 'schedule' | 'timeZone' | 'jitterSeconds' | 'state'>;
type Wanted = ReadonlyMap<number, { readonly remembered: ExistingTrigger | null; readonly planOf: PlanOf }>;

interface StoredTriggers {
  readonly created: TriggerPlan[];
  readonly found: Trigger[];
  readonly changed: { readonly trigger: Trigger; readonly plan: TriggerPlan }[];
}

type PlannerConfig = Pick<TaskServiceConfig, 'TRIGGER_JITTER_SECONDS' | 'GENERATION_HORIZON_DAYS'>;

/**
 * Plans triggers as of one instant. Facilities with the same cron and zone, the rule within a request, are
 * computed once.
 */
class Planner {
  private readonly occurrences = new Map<string, { recent: Date; next: Date; second: Date }>();

  constructor(
    readonly now: Date,
    private readonly config: PlannerConfig,
  ) {}

  /**
   * A trigger for which nobody asked for an expression does not fire with all the others at the default one.
   */
  plan(request: GenerationRequest, existing: ExistingTrigger | null): TriggerPlan {
    const { facilityId } = request;
    const { schedule, timeZone } = generationSettings(request, existing);
    const isAsked = request.schedule !== undefined;
    const share = existing?.jitterSeconds ?? jitterSecondsOf(facilityId, this.config.TRIGGER_JITTER_SECONDS);
    const jitterSeconds = isAsked ? 0 : share;
    const later = (instant: Date): Date => new Date(instant.getTime() + jitterSeconds * SECOND_MS);
    const { recent, next } = this.occurrencesOf({ facilityId, schedule, timeZone });
    const nextFireAt = later(recent) > this.now ? later(recent) : later(next);
    // A pause is its operator's decision and outlives other settings; an error does not.
    const state = existing?.state === 'PAUSED' ? 'PAUSED' : 'WAITING';
    return { facilityId, schedule, timeZone, nextFireAt, jitterSeconds, state };
  }

  /** As `plan`; a plan in ERROR when what the existing trigger adds to the request cannot be evaluated.
   *  @throws {GenerationRefused} if the request by itself is the reason */
  planOrFail(request: GenerationRequest, existing: ExistingTrigger | null): TriggerPlan {
    try {
      return this.plan(request, existing);
    } catch (error) {
      if (existing === null || !(error instanceof GenerationRefused)) throw error;
      const { nextFireAt } = this.plan(request, null);
      const { schedule, timeZone, jitterSeconds } = existing;
      return {
        facilityId: request.facilityId,
        schedule,
        timeZone,
        jitterSeconds,
        nextFireAt,
        state: 'ERROR',
      };
    }
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

/**
 * An overdue occurrence of an unchanged trigger is still to fire. One that lies beyond the next occurrence
 * was planned by a clock that was ahead.
 */
function isChanged(trigger: Trigger, plan: TriggerPlan): boolean {
  const hasOtherSettings =
    plan.schedule !== trigger.schedule ||
    plan.timeZone !== trigger.timeZone ||
    plan.jitterSeconds !== trigger.jitterSeconds;
  return hasOtherSettings || trigger.state === 'ERROR' || trigger.nextFireAt > plan.nextFireAt;
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
