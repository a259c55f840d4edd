import { Inject, Injectable, Logger } from '@nestjs/common';
import { Metrics } from '@platform/service-defaults';
import { DAY_MS, SECOND_MS } from '@platform/time';
import type { EntityManager } from 'typeorm';
import { TASK_CONFIG, type TaskServiceConfig } from '../config';
import { InstancesRepository, type Occurrence, type Release } from '../instances/instances.repository';
import { runAfterCommit } from '../outbound/after-commit.service';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { generationRequested } from '../scheduler/due-fire';
import { type TriggerPlan, TriggersRepository } from '../scheduler/triggers.repository';
import { parseCronExpression } from '../schedules/cron-expression';
import { nextOccurrence } from '../schedules/occurrences';
import { type GeneratingSchedule, SchedulesRepository } from '../schedules/schedules.repository';
import { timeZone } from '../schedules/time-zone';
import { type GenerationPlan, type GenerationWindow, planGeneration } from './generation-plan';

const ROWS_PER_INSERT = 5_000;
/** A run ends after so many instances and asks for another one: its locks do not last, whatever a trigger's gap is. */
const INSTANCES_PER_RUN = 100_000;

/** Whose instances are generated: those of one schedule of the facility, or of all. */
export interface GenerationTarget {
  readonly facilityId: number;
  readonly scheduleId?: string;
}

type GenerationConfig = Pick<TaskServiceConfig, 'GENERATION_HORIZON_DAYS' | 'GENERATION_CATCH_UP_DAYS'>;

/** Generates the task instances of Active schedules, at least up to the facility's fire after next, so that one fire may be missed. It
 *  begins where it ended: nothing between then and now is left out. Repeating it creates nothing twice. */
@Injectable()
export class InstanceGenerationService {
  private readonly logger = new Logger(InstanceGenerationService.name);
  private readonly generated;
  private readonly skipped;

  constructor(
    private readonly schedules: SchedulesRepository,
    private readonly instances: InstancesRepository,
    private readonly triggers: TriggersRepository,
    private readonly outbound: OutboundProxy,
    @Inject(TASK_CONFIG) private readonly config: GenerationConfig,
    metrics: Metrics,
  ) {
    this.generated = metrics.counter('task_instances_generated_total', 'Task instances generated');
    this.skipped = metrics.counter(
      'task_instances_skipped_total',
      'Occurrences that were too old to be made up for when generation came to them',
    );
  }

  /** Generates up to the horizon. Gives the number of instances created. */
  async generate(manager: EntityManager, target: GenerationTarget): Promise<number> {
    const window = await this.windowOf(manager, target.facilityId);
    const found = await this.schedules.lockForGeneration(manager, target, window.until);
    const { plans, isComplete } = planGeneration(found, window, INSTANCES_PER_RUN);
    for (const { scheduleId, kept } of plans)
      if (kept) await this.instances.release(manager, { scheduleId, kept, cause: 'Calendar', actor: null });
    if (!isComplete)
      await this.outbound.store(manager, [generationRequested(target.facilityId, { firedAt: window.now })]);
    return this.carryOut(manager, plans);
  }

  /** Generates what a schedule was due at until now and has no instance yet, before the schedule changes. */
  async catchUp(manager: EntityManager, target: Required<GenerationTarget>): Promise<void> {
    const now = await this.triggers.databaseNow(manager);
    const found = await this.schedules.lockForGeneration(manager, target, now);
    const window = { now, until: now, earliest: this.earliest(now) };
    // A changed calendar is for what is still to come.
    const schedules = found.map((each) => ({ ...each, isCalendarStale: false }));
    await this.carryOut(manager, planGeneration(schedules, window, Infinity).plans);
  }

  /** Brings the instances still to come in line with a locked schedule that has changed: pending ones at instants that stay keep their
   *  identifier, the others are cancelled, missing ones are created. Gives how many were cancelled. */
  async realign(
    manager: EntityManager,
    { facilityId, scheduleId }: Required<GenerationTarget>,
    { cause, actor }: Pick<Release, 'cause' | 'actor'>,
  ): Promise<number> {
    const window = await this.windowOf(manager, facilityId);
    const found = await this.schedules.lockForGeneration(manager, { facilityId, scheduleId }, null);
    const fromNow: GeneratingSchedule[] = found.map((each) => ({
      ...each,
      generatedUntil: window.now,
      isCalendarStale: true,
    }));
    // None when it is not Active: nothing is kept then.
    const { plans } = planGeneration(fromNow, window, Infinity);
    const kept = plans[0]?.kept ?? [];
    const cancelled = await this.instances.release(manager, { scheduleId, kept, cause, actor });
    await this.carryOut(manager, plans);
    return cancelled;
  }

  private async carryOut(manager: EntityManager, plans: readonly GenerationPlan[]): Promise<number> {
    if (plans.length === 0) return 0;
    let created = 0;
    for (const occurrences of inChunks(plans))
      created += await this.instances.insertMissing(manager, occurrences);
    await this.schedules.markGenerated(manager, plans);
    const skipped = plans.reduce((sum, plan) => sum + plan.skipped, 0);
    const key = plans.map(({ scheduleId }) => scheduleId).join();
    // What is rolled back was not generated.
    runAfterCommit(manager, `generated ${key} ${String(plans[0]?.generatedUntil.getTime())}`, () => {
      this.generated.inc(created);
      if (skipped === 0) return;
      this.skipped.inc(skipped);
      this.logger.warn(`${String(skipped)} occurrences were too old to be made up for: schedules ${key}`);
    });
    return created;
  }

  private async windowOf(manager: EntityManager, facilityId: number): Promise<GenerationWindow> {
    const { now, fire } = await this.triggers.findNextFire(manager, facilityId);
    const horizonMs = now.getTime() + this.config.GENERATION_HORIZON_DAYS * DAY_MS;
    const secondMs = fire === null ? 0 : secondFireMs(fire);
    return { now, until: new Date(Math.max(horizonMs, secondMs)), earliest: this.earliest(now) };
  }

  private earliest(now: Date): Date {
    return new Date(now.getTime() - this.config.GENERATION_CATCH_UP_DAYS * DAY_MS);
  }
}

function secondFireMs({ schedule, timeZone: zone, nextFireAt, jitterSeconds }: TriggerPlan): number {
  const occurrence = nextOccurrence(parseCronExpression(schedule), timeZone(zone), nextFireAt);
  return occurrence.getTime() + jitterSeconds * SECOND_MS;
}

function* inChunks(plans: readonly GenerationPlan[]): Generator<Occurrence[]> {
  let chunk: Occurrence[] = [];
  for (const { scheduleId, dueInstants } of plans) {
    for (const dueAt of dueInstants) {
      chunk.push({ scheduleId, dueAt });
      if (chunk.length === ROWS_PER_INSERT) {
        yield chunk;
        chunk = [];
      }
    }
  }
  if (chunk.length > 0) yield chunk;
}
