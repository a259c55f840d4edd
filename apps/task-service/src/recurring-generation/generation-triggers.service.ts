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
import { nextOccurrence } from '../recurrence/occurrences';
import { GenerationRefused, type GenerationRequest, generationSettings } from './generation-settings';

/**
 * Configures the recurring generation of a facility: stores its trigger and the ScheduledMessageEvent that
 * announces it.
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
   * Creates or replaces the facility's trigger. Idempotent. A paused trigger stays paused, which the response
   * says.
   * @param conversationId conversation of the message with the request
   * @throws {GenerationRefused} for a request that cannot be carried out
   */
  async schedule(
    manager: EntityManager,
    { facilityId, ...request }: GenerationRequest,
    conversationId: string | null,
  ): Promise<ScheduleRecurringTaskInstanceGenerationSucceeded> {
    const { now, inactive, removedTriggers } = await this.activity.find(manager, [facilityId]);
    const planner = new Planner(now, this.config);
    const planOf: PlanOf = (existing) => planner.plan({ ...request, facilityId }, existing);
    const { created, found, changed } = await this.store(
      manager,
      new Map([[facilityId, { removed: removedTriggers.get(facilityId) ?? null, planOf }]]),
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
   * Creates the triggers of facilities that a business unit has activated, with a handful of statements.
   * Idempotent. A facility gets back the settings and the pause that it had before it became inactive. If
   * those settings cannot be evaluated any more, its trigger is created in ERROR and the other facilities are
   * not affected.
   * @param facilityIds ascending, without duplicates, so that transactions with common facilities lock them
   * in the same order
   * @throws {GenerationRefused} for a request that cannot be carried out at any facility
   */
  async scheduleAll(
    manager: EntityManager,
    facilityIds: readonly number[],
    request: Omit<GenerationRequest, 'facilityId'>,
    conversationId: string | null,
  ): Promise<void> {
    const { now, inactive, removedTriggers } = await this.activity.find(manager, facilityIds);
    const planner = new Planner(now, this.config);
    const wanted = facilityIds.map((facilityId) => {
      const planOf: PlanOf = (existing) => planner.planOrFail({ ...request, facilityId }, existing);
      return [facilityId, { removed: removedTriggers.get(facilityId) ?? null, planOf }] as const;
    });
    const { created, changed } = await this.store(manager, new Map(wanted));
    await this.activity.noteActive(
      manager,
      created.map(({ facilityId }) => facilityId),
    );
    await this.announce(manager, planner, { created, changed, inactive }, conversationId);
  }

  /** Inserts the missing triggers and updates those whose plan differs. */
  private async store(manager: EntityManager, wanted: Wanted): Promise<StoredTriggers> {
    const plans = [...wanted.values()].map(({ removed, planOf }) => planOf(removed));
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
    // Requests generation now for a facility that was inactive, which may have no future instances, and for
    // one whose trigger fires rarely, which needs instances before its first fire.
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
 * Plans a facility's trigger.
 * @param existing the trigger that the facility has, or had before it became inactive
 */
type PlanOf = (existing: ExistingTrigger | null) => TriggerPlan;
type ExistingTrigger = Pick<Trigger, 'schedule' | 'timeZone' | 'jitterSeconds' | 'state'>;
type Wanted = ReadonlyMap<number, { readonly removed: ExistingTrigger | null; readonly planOf: PlanOf }>;

interface StoredTriggers {
  readonly created: TriggerPlan[];
  readonly found: Trigger[];
  readonly changed: { readonly trigger: Trigger; readonly plan: TriggerPlan }[];
}

type PlannerConfig = Pick<TaskServiceConfig, 'TRIGGER_JITTER_SECONDS' | 'GENERATION_HORIZON_DAYS'>;

/**
 * Plans triggers as of one instant. Facilities with the same cron expression and zone, the usual case within
 * a request, are computed once.
 */
class Planner {
  private readonly occurrences = new Map<string, { recent: Date; next: Date; second: Date }>();

  constructor(
    readonly now: Date,
    private readonly config: PlannerConfig,
  ) {}

  /**
   * Plans the trigger of a request. Without a requested expression the trigger gets jitter, so that the
   * triggers with the default expression do not all fire at once.
   */
  plan(request: GenerationRequest, existing: ExistingTrigger | null): TriggerPlan {
    const { facilityId } = request;
    const { schedule, timeZone } = generationSettings(request, existing);
    const isRequested = request.schedule !== undefined;
    const jitterOfFacility =
      existing?.jitterSeconds ?? jitterSecondsOf(facilityId, this.config.TRIGGER_JITTER_SECONDS);
    const jitterSeconds = isRequested ? 0 : jitterOfFacility;
    const jittered = (instant: Date): Date => new Date(instant.getTime() + jitterSeconds * SECOND_MS);
    const { recent, next } = this.occurrencesOf({ facilityId, schedule, timeZone });
    const nextFireAt = jittered(recent) > this.now ? jittered(recent) : jittered(next);
    // A pause, which an operator has decided, survives a change of settings; an error does not.
    const state = existing?.state === 'PAUSED' ? 'PAUSED' : 'WAITING';
    return { facilityId, schedule, timeZone, nextFireAt, jitterSeconds, state };
  }

  /**
   * Like `plan`, but returns a plan in ERROR if the settings of the existing trigger cannot be evaluated.
   * @throws {GenerationRefused} if the request itself is the reason
   */
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

  /** Returns whether the second fire from now is beyond the horizon of generation. */
  isRare(plan: TriggerPlan): boolean {
    const horizonMs = this.now.getTime() + this.config.GENERATION_HORIZON_DAYS * DAY_MS;
    return this.occurrencesOf(plan).second.getTime() > horizonMs;
  }

  /**
   * Returns the first two occurrences after now, and in `recent` the first one after now minus the maximum
   * jitter. The jittered fire of `recent` may still be in the future.
   */
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
 * Returns whether a plan changes a trigger. If only the next fire differs, an earlier one is kept, because it
 * may be overdue. A later one was planned by a clock that was ahead, and is replaced.
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
