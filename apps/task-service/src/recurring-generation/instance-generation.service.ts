import { Injectable, Logger } from '@nestjs/common';
import { Metrics } from '@platform/service-defaults';
import type { EntityManager } from 'typeorm';
import { InstancesRepository, type Occurrence } from '../instances/instances.repository';
import { runAfterCommit } from '../outbound/after-commit.service';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { generationRequested } from '../scheduler/due-fire';
import { GeneratingSchedulesRepository } from '../schedules/generating-schedules.repository';
import { isEvaluable } from '../schedules/recurrence';
import type { GeneratingSchedule } from '../schedules/schedules.repository';
import { GenerationBudget } from './generation-budget.service';
import { type GenerationPlan, type GenerationPlans, planGeneration } from './generation-plan';
import { InstanceAlignmentService } from './instance-alignment.service';

const ROWS_PER_INSERT = 5_000;
/**
 * A run ends after so many instances and asks for another one, which comes after those of other facilities:
 * one with many instances holds up nobody, and locks do not last, whatever a trigger's gap is.
 */
const INSTANCES_PER_RUN = 10_000;
/** What must be generated before a schedule changes, while its caller waits. */
const INSTANCES_PER_CATCH_UP = 100_000;
/** What a change of a schedule generates itself, while its caller waits. */
const INSTANCES_PER_CHANGE = 5_000;
/** Schedules whose instances a run brings in line with a changed calendar. */
const CALENDAR_CHANGES_PER_RUN = 100;

/** Whose instances are generated: those of one schedule of the facility, or of all. */
export interface GenerationTarget {
  readonly facilityId: number;
  readonly scheduleId?: string;
}

/**
 * Generates the task instances of Active schedules, at least up to the facility's fire after next, so that
 * one fire may be missed. It begins where it ended: nothing between then and now is left out. Repeating it
 * creates nothing twice. A schedule that cannot be evaluated gets its error noted and keeps nothing from the
 * others.
 */
@Injectable()
export class InstanceGenerationService {
  private readonly logger = new Logger(InstanceGenerationService.name);
  private readonly generated;
  private readonly skipped;

  constructor(
    private readonly schedules: GeneratingSchedulesRepository,
    private readonly instances: InstancesRepository,
    private readonly budget: GenerationBudget,
    private readonly alignment: InstanceAlignmentService,
    private readonly outbound: OutboundProxy,
    metrics: Metrics,
  ) {
    this.generated = metrics.counter('task_instances_generated_total', 'Task instances generated');
    this.skipped = metrics.counter(
      'task_instances_skipped_total',
      'Occurrences that were too old to be made up for when generation came to them',
    );
  }

  /**
   * Generates up to the horizon, `perRun` instances at most; the rest in other runs. Gives the number of
   * instances created.
   */
  async generate(
    manager: EntityManager,
    target: GenerationTarget,
    perRun = INSTANCES_PER_RUN,
  ): Promise<number> {
    const { facilityId } = target;
    const window = await this.budget.windowOf(manager, facilityId);
    const found = await this.schedules.lockForGeneration(manager, target, window.until);
    const schedules = withFewCalendarChanges(found);
    const wanted = planGeneration(schedules, window, perRun);
    const planned = await this.budget.cut(manager, { facilityId, schedules, window, wanted, perRun });
    const followed = planned.plans.filter(({ isCalendarStale }) => isCalendarStale);
    for (const { scheduleId } of followed)
      await this.followCalendar(manager, schedules, { scheduleId, now: window.now });
    // A run that follows no calendar would be followed by one that does the same.
    const hasMoreToFollow = followed.length > 0 && found.length > schedules.length;
    if (!planned.isComplete || hasMoreToFollow)
      await this.outbound.store(manager, [generationRequested(facilityId, { requestedAt: window.now })]);
    return this.carryOut(manager, planned);
  }

  /** Generates the missing instances of a locked schedule up to now, before the schedule changes.
   *  `isComplete` is false if one transaction could not generate them all; `isEvaluable` is false if the
   *  schedule cannot be evaluated, and then nothing was generated. */
  async catchUp(
    manager: EntityManager,
    target: Required<GenerationTarget>,
    now: Date,
  ): Promise<{ isComplete: boolean; isEvaluable: boolean }> {
    const found = await this.schedules.lockForGeneration(manager, target, now);
    const window = await this.budget.windowUntil(manager, target.facilityId, now);
    // A changed calendar concerns future instances only: it is followed by the next run, which finds the
    // schedule by the revision that it keeps, also where nothing has come due.
    const schedules = found
      .filter(({ generatedUntil }) => generatedUntil < now)
      .map((each) => ({ ...each, calendarRevision: each.generatedRevision, isCalendarStale: false }));
    const planned = planGeneration(schedules, window, INSTANCES_PER_CATCH_UP);
    await this.carryOut(manager, planned);
    return { isComplete: planned.isComplete, isEvaluable: planned.failed.length === 0 };
  }

  /** Generates the future instances of a locked schedule that has changed, from `now` on: the first ones in
   *  this transaction, the rest by a request for generation. */
  async regenerate(
    manager: EntityManager,
    { facilityId, scheduleId }: Required<GenerationTarget>,
    { now, isEvaluable }: { now: Date; isEvaluable: boolean },
  ): Promise<void> {
    const window = { ...(await this.budget.windowOf(manager, facilityId)), now };
    const found = await this.schedules.lockForGeneration(manager, { facilityId, scheduleId }, null);
    // While it could not be evaluated, nothing was generated: those occurrences are made up for.
    const from = (each: GeneratingSchedule): Date =>
      !isEvaluable && each.generatedUntil < now ? each.generatedUntil : now;
    const schedules = found.map((each) => ({
      ...each,
      generatedUntil: from(each),
      isCalendarStale: false,
    }));
    const planned = planGeneration(schedules, window, INSTANCES_PER_CHANGE);
    await this.carryOut(manager, planned);
    if (!planned.isComplete)
      await this.outbound.store(manager, [generationRequested(facilityId, { requestedAt: now })]);
  }

  private async followCalendar(
    manager: EntityManager,
    schedules: readonly GeneratingSchedule[],
    { scheduleId, now }: { scheduleId: string; now: Date },
  ): Promise<void> {
    const schedule = schedules.find((each) => each.scheduleId === scheduleId);
    if (schedule === undefined) return;
    await this.alignment.begin(manager, {
      schedule: { ...schedule, status: 'Active' },
      cause: 'Calendar',
      actor: null,
      changedAt: now,
      onlyCopies: false,
    });
  }

  private async carryOut(manager: EntityManager, { plans, failed }: GenerationPlans): Promise<number> {
    if (failed.length > 0) await this.fail(manager, failed);
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

  private async fail(manager: EntityManager, failed: GenerationPlans['failed']): Promise<void> {
    await this.schedules.markFailed(manager, failed);
    for (const { scheduleId, error } of failed)
      this.logger.warn(`schedule ${scheduleId} cannot be evaluated and generates nothing: ${error}`);
  }
}

/** Those with a changed calendar beyond the first ones wait for another run. One that cannot be evaluated
 *  follows nothing: it takes the place of no other. */
function withFewCalendarChanges(found: readonly GeneratingSchedule[]): GeneratingSchedule[] {
  let left = CALENDAR_CHANGES_PER_RUN;
  return found.filter((schedule) => {
    if (!schedule.isCalendarStale || !isEvaluable(schedule)) return true;
    left -= 1;
    return left >= 0;
  });
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
