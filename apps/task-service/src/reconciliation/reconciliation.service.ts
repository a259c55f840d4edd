import { Inject, Injectable } from '@nestjs/common';
import { inTransaction, isConnectionError, isStatementTimeout } from '@platform/database';
import { DAY_MS } from '@platform/time';
import type { EntityManager } from 'typeorm';
import { TASK_CONFIG, type TaskServiceConfig } from '../config';
import { databaseNow } from '../stored-schedules/database-now.repository';
import { messageTypesOf } from '../outbound/outbound-event';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { errorText } from '../outbound/publish-failure';
import { type GenerationPlans, planGeneration } from '../recurring-generation/generation-plan';
import { InstanceAlignmentService } from '../recurring-generation/instance-alignment.service';
import { generationRequested } from '../scheduler/due-fire';
import { CronExpressionError, parseCronExpression } from '../recurrence/cron-expression';
import { dueBetween, RecurrenceError, recurrenceOf } from '../recurrence/recurrence';
import { TimeZoneError, timeZone } from '../recurrence/time-zone';
import { GeneratingSchedulesRepository } from '../stored-schedules/generating-schedules.repository';
import { excludedSpans } from './excluded-spans';
import {
  type ExaminedSchedule,
  type FiringTrigger,
  MAX_LEFTOVERS,
  ReconciliationRepository,
} from './reconciliation.repository';

/** An inconsistency and its repair. */
export interface Finding {
  readonly problem:
    | 'schedule without instances'
    | 'instances of a schedule that is not Active'
    | 'instances on dates of the calendar'
    | 'trigger without business unit'
    | 'trigger that cannot be evaluated'
    | 'event of an unknown type'
    | 'schedule that cannot be evaluated'
    | 'check that failed';
  readonly facilityId: number;
  /** Id of the schedule or event; for a trigger, its name. */
  readonly id: string;
  readonly repair: string;
}

export interface ReconciliationOptions {
  /** Whether to repair; otherwise only report. */
  readonly applies: boolean;
  /** Minutes for which new rows are not suspected, because a message may still be on its way. */
  readonly graceMinutes: number;
  /** Whether to wait for another process that reconciles; otherwise skip the work. */
  readonly waits: boolean;
  readonly isStopping?: () => boolean;
  /** Called with the number of schedules examined so far. */
  readonly progress?: (examined: number) => void;
}

interface ReconciledPage {
  readonly findings: Finding[];
  readonly examined: number;
  /** Last schedule of the page; absent if the page is empty or another process is reconciling. */
  readonly last?: string;
}

type GenerationConfig = Pick<TaskServiceConfig, 'GENERATION_HORIZON_DAYS' | 'GENERATION_CATCH_UP_DAYS'>;

const PAGE_SIZE = 1_000;
/** Factor by which a page is made smaller each time the database times out on it. */
const SHRINK_FACTOR = 10;
const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';

/**
 * Finds the effects of a lost message or a restored database, and repairs them. Each repair is idempotent and
 * independent: a failed one is reported and does not stop the others.
 */
@Injectable()
export class ReconciliationService {
  constructor(
    private readonly repository: ReconciliationRepository,
    private readonly schedules: GeneratingSchedulesRepository,
    @Inject(OutboundProxy) private readonly outbound: Pick<OutboundProxy, 'store'>,
    private readonly alignment: InstanceAlignmentService,
    @Inject(TASK_CONFIG) private readonly config: GenerationConfig,
  ) {}

  /**
   * Examines every schedule, 1,000 per transaction, or fewer if the database times out. A schedule whose
   * examination alone times out is reported.
   */
  async reconcileSchedules(options: ReconciliationOptions): Promise<Finding[]> {
    const { isStopping = () => false, progress = () => undefined } = options;
    const findings: Finding[] = [];
    let [examined, after]: [number, string | undefined] = [0, BEFORE_ALL];
    while (after !== undefined && !isStopping()) {
      const page = await this.reconcileNext(after, options);
      findings.push(...page.findings);
      if (page.examined > 0) progress((examined += page.examined));
      after = page.last;
    }
    return findings;
  }

  /** Examines the page after a schedule, or as much of it as the database reads in time. */
  private async reconcileNext(
    after: string,
    options: ReconciliationOptions,
    limit = PAGE_SIZE,
  ): Promise<ReconciledPage> {
    try {
      return await inTransaction(this.repository.dataSource, 'READ COMMITTED', (manager) =>
        this.reconcilePage(manager, after, { ...options, limit }),
      );
    } catch (error) {
      if (!isStatementTimeout(error)) throw error;
      if (limit > 1) return this.reconcileNext(after, options, limit / SHRINK_FACTOR);
      const next = await this.repository.nextSchedule(after);
      if (next === null) return { findings: [], examined: 0 };
      const finding = { problem: 'check that failed', ...next, repair: `none: ${errorText(error)}` } as const;
      return { findings: [finding], examined: 1, last: next.id };
    }
  }

  /**
   * Finds what only an operator can judge: triggers without a business unit, which a command may have
   * created; triggers that cannot be evaluated; and events of unknown types, which a newer release may have
   * stored.
   */
  async findLeftovers(): Promise<Finding[]> {
    const [triggers, broken, events] = await Promise.all([
      findOrReportFailure('triggers', () => this.findTriggers()),
      findOrReportFailure('settings of triggers', () => this.findBrokenTriggers()),
      findOrReportFailure('events', () => this.findEvents()),
    ]);
    return [...triggers, ...broken, ...events];
  }

  private async findTriggers(): Promise<Finding[]> {
    const triggers = await this.repository.triggersWithoutBusinessUnit();
    return triggers.map((trigger) => ({
      problem: 'trigger without business unit',
      ...trigger,
      repair: 'none: a command may have made it',
    }));
  }

  /**
   * Finds triggers that cannot be evaluated. Their next fire would put them in ERROR, but that may be a year
   * away.
   */
  private async findBrokenTriggers(): Promise<Finding[]> {
    const findings: Finding[] = [];
    const evaluate = memoisedEvaluation();
    let page = await this.repository.firingTriggers(0);
    while (page.length > 0 && findings.length < MAX_LEFTOVERS) {
      for (const trigger of page) {
        const error = evaluate(trigger);
        if (error === null) continue;
        const { facilityId, id } = trigger;
        const repair = `none: ${error}; schedule the generation of the facility anew`;
        findings.push({ problem: 'trigger that cannot be evaluated', facilityId, id, repair });
      }
      page = await this.repository.firingTriggers(page.at(-1)!.facilityId);
    }
    return findings;
  }

  private async findEvents(): Promise<Finding[]> {
    const events = await this.repository.eventsOfOtherTypes(messageTypesOf(['main', 'scheduling']));
    return events.map((event) => ({
      problem: 'event of an unknown type',
      ...event,
      repair: 'none: outbox skip, then discard',
    }));
  }

  private async reconcilePage(
    manager: EntityManager,
    after: string,
    options: ReconciliationOptions & { readonly limit: number },
  ): Promise<ReconciledPage> {
    if (!(await this.repository.lock(manager, options.waits))) return { findings: [], examined: 0 };
    const horizonDays = this.config.GENERATION_HORIZON_DAYS;
    const page = await this.repository.examine(manager, after, { ...options, horizonDays });
    const findings: Finding[] = [];
    const requested = new Set<number>();
    const onExcludedDates = await this.findOnExcludedDates(manager, page);
    for (const schedule of page) {
      const finding = this.judge(schedule, onExcludedDates);
      if (finding === null) continue;
      const repairs = options.applies && this.repairOf(finding, schedule, requested);
      findings.push(repairs ? await this.repair(manager, finding, repairs) : finding);
    }
    return { findings, examined: page.length, ...(page.length > 0 && { last: page.at(-1)!.scheduleId }) };
  }

  /** Returns the schedules with future pending instances on dates that their calendar excludes. */
  private async findOnExcludedDates(
    manager: EntityManager,
    page: readonly ExaminedSchedule[],
  ): Promise<ReadonlySet<string>> {
    const follows = page.filter(({ followsCalendar }) => followsCalendar);
    const calendarIds = new Set(follows.flatMap(({ calendarId }) => calendarId ?? []));
    const dates = await this.repository.nextExcludedDates(manager, calendarIds);
    const following = new Map(
      follows.map((each) => [
        each.scheduleId,
        { ...each, excludedDates: dates.get(each.calendarId ?? '') ?? [] },
      ]),
    );
    const spans = excludedSpans([...following.values()]);
    if (spans.length === 0) return new Set();
    const pending = await this.repository.firstPendingIn(manager, spans);
    const isUnwanted = ({ scheduleId, dueAt }: { scheduleId: string; dueAt: Date }): boolean => {
      const schedule = following.get(scheduleId);
      return schedule !== undefined && !isDueAt(schedule, dueAt);
    };
    return new Set(pending.filter(isUnwanted).map(({ scheduleId }) => scheduleId));
  }

  private judge(schedule: ExaminedSchedule, onExcludedDates: ReadonlySet<string>): Finding | null {
    const { facilityId, scheduleId: id, suspicion } = schedule;
    if (onExcludedDates.has(id)) {
      const problem = 'instances on dates of the calendar';
      return { problem, facilityId, id, repair: 'the calendar is followed anew' };
    }
    if (suspicion === null) return null;
    if (suspicion === 'inactive') {
      const problem = 'instances of a schedule that is not Active';
      return { problem, facilityId, id, repair: 'they are cancelled' };
    }
    const { plans, failed } = this.plan(schedule);
    const [failure] = failed;
    if (failure !== undefined) {
      const problem = 'schedule that cannot be evaluated';
      return { problem, facilityId, id, repair: `none: ${failure.error}` };
    }
    if (plans.every(({ dueInstants }) => dueInstants.length === 0)) return null;
    const problem = 'schedule without instances';
    return { problem, facilityId, id, repair: 'generation is requested' };
  }

  /**
   * Returns the repair of a finding, or null if there is none.
   * @param requested facilities whose generation has been requested already
   */
  private repairOf(
    { problem }: Finding,
    schedule: ExaminedSchedule,
    requested: Set<number>,
  ): ((manager: EntityManager) => Promise<void>) | null {
    if (problem === 'instances of a schedule that is not Active')
      return (manager) => this.cancelInstances(manager, schedule);
    const { facilityId, scheduleId, now } = schedule;
    const isOnExcludedDates = problem === 'instances on dates of the calendar';
    if (!isOnExcludedDates && (problem !== 'schedule without instances' || requested.has(facilityId)))
      return null;
    return async (manager) => {
      if (isOnExcludedDates) await this.schedules.clearCalendarRevision(manager, scheduleId);
      if (requested.has(facilityId)) return;
      // Sends the message that a trigger's fire sends: its consumer generates all missing instances of the
      // facility.
      await this.outbound.store(manager, [generationRequested(facilityId, { requestedAt: now })]);
      requested.add(facilityId);
    };
  }

  /** Repairs in a savepoint, so that a failure undoes nothing else. */
  private async repair(
    manager: EntityManager,
    finding: Finding,
    work: (manager: EntityManager) => Promise<void>,
  ): Promise<Finding> {
    try {
      await manager.transaction(work);
      return finding;
    } catch (error) {
      if (isConnectionError(error)) throw error;
      return { ...finding, repair: `failed: ${errorText(error)}` };
    }
  }

  private plan(schedule: ExaminedSchedule): GenerationPlans {
    const { now } = schedule;
    const until = new Date(now.getTime() + this.config.GENERATION_HORIZON_DAYS * DAY_MS);
    const earliest = new Date(now.getTime() - this.config.GENERATION_CATCH_UP_DAYS * DAY_MS);
    return planGeneration([schedule], { now, until, earliest }, 1);
  }

  private async cancelInstances(manager: EntityManager, inactive: ExaminedSchedule): Promise<void> {
    const status = await this.repository.lockInactive(manager, inactive.scheduleId);
    if (status === null) return;
    const cause = status === 'Removed' ? 'Removal' : 'Pause';
    const changedAt = await databaseNow(manager);
    const schedule = { ...inactive, status };
    await this.alignment.begin(manager, {
      schedule,
      cause,
      actor: null,
      changedAt,
      onlyCopies: false,
    });
  }
}

/**
 * Returns whether the schedule is due at the instant. True also for a schedule that cannot be evaluated;
 * generation reports that.
 */
function isDueAt(schedule: ExaminedSchedule, instant: Date): boolean {
  try {
    const before = new Date(instant.getTime() - 1);
    return dueBetween(recurrenceOf(schedule), before, instant, 1).length > 0;
  } catch (error) {
    if (error instanceof RecurrenceError) return true;
    throw error;
  }
}

/**
 * Returns a memoised function that returns why a trigger cannot be evaluated, or null if it can. Thousands of
 * facilities share the same few settings.
 */
function memoisedEvaluation(): (trigger: FiringTrigger) => string | null {
  const known = new Map<string, string | null>();
  return ({ schedule, timeZone: zone }) => {
    const key = `${schedule}\n${zone}`;
    const cached = known.get(key);
    if (cached !== undefined) return cached;
    const error = evaluationError(schedule, zone);
    known.set(key, error);
    return error;
  };
}

function evaluationError(schedule: string, zone: string): string | null {
  try {
    parseCronExpression(schedule);
    timeZone(zone);
    return null;
  } catch (error) {
    if (error instanceof CronExpressionError || error instanceof TimeZoneError) return error.message;
    throw error;
  }
}

/** Returns the findings of one check. If it fails, the failure is its finding. */
async function findOrReportFailure(id: string, find: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await find();
  } catch (error) {
    return [{ problem: 'check that failed', facilityId: 0, id, repair: `none: ${errorText(error)}` }];
  }
}
