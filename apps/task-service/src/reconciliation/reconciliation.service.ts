import { Inject, Injectable } from '@nestjs/common';
import { inTransaction, isConnectionError } from '@platform/database';
import { DAY_MS } from '@platform/time';
import type { EntityManager } from 'typeorm';
import { TASK_CONFIG, type TaskServiceConfig } from '../config';
import { databaseNow } from '../instances/database-now.repository';
import { messageTypesOf } from '../outbound/outbound-event';
import { OutboundProxy } from '../outbound/outbound-proxy.service';
import { errorText } from '../outbound/publish-failure';
import { type GenerationPlans, planGeneration } from '../recurring-generation/generation-plan';
import { InstanceAlignmentService } from '../recurring-generation/instance-alignment.service';
import { generationRequested } from '../scheduler/due-fire';
import { type ExaminedSchedule, ReconciliationRepository } from './reconciliation.repository';

/** Something that does not fit together, and what is done about it. */
export interface Finding {
  readonly problem:
    | 'schedule without instances'
    | 'instances of a schedule that is not Active'
    | 'trigger without business unit'
    | 'event of an unknown type'
    | 'schedule that cannot be evaluated'
    | 'check that failed';
  readonly facilityId: number;
  /** Of the schedule or the event; of a trigger its name. */
  readonly id: string;
  readonly repair: string;
}

export interface ReconciliationOptions {
  /** False: it only looks. */
  readonly applies: boolean;
  /** What is younger may still be on its way. */
  readonly graceMinutes: number;
  /** Waits for another process that reconciles; else it leaves the work to that one. */
  readonly waits: boolean;
  readonly isStopping?: () => boolean;
  /** Told how many schedules were examined. */
  readonly progress?: (examined: number) => void;
}

type GenerationConfig = Pick<TaskServiceConfig, 'GENERATION_HORIZON_DAYS' | 'GENERATION_CATCH_UP_DAYS'>;

const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';

/** Finds what a lost message or a restored database left undone, and does it again. Every repair may come twice. Each is done by itself:
 *  one that fails is named, and stops no other. */
@Injectable()
export class ReconciliationService {
  constructor(
    private readonly repository: ReconciliationRepository,
    @Inject(OutboundProxy) private readonly outbound: Pick<OutboundProxy, 'store'>,
    private readonly alignment: InstanceAlignmentService,
    @Inject(TASK_CONFIG) private readonly config: GenerationConfig,
  ) {}

  /** Examines every schedule, a thousand in a transaction. */
  async reconcileSchedules(options: ReconciliationOptions): Promise<Finding[]> {
    const { isStopping = () => false, progress = () => undefined } = options;
    const findings: Finding[] = [];
    let [examined, after]: [number, string | undefined] = [0, BEFORE_ALL];
    while (after !== undefined && !isStopping()) {
      const from: string = after;
      const page = await inTransaction(this.repository.dataSource, 'READ COMMITTED', (manager) =>
        this.reconcilePage(manager, from, options),
      );
      findings.push(...page.findings);
      if (page.examined > 0) progress((examined += page.examined));
      after = page.last;
    }
    return findings;
  }

  /** What only an operator can judge: a command may have made the trigger, a newer release the event. */
  async findLeftovers(): Promise<Finding[]> {
    const [triggers, events] = await Promise.all([
      findOrName('triggers', () => this.findTriggers()),
      findOrName('events', () => this.findEvents()),
    ]);
    return [...triggers, ...events];
  }

  private async findTriggers(): Promise<Finding[]> {
    const triggers = await this.repository.triggersWithoutBusinessUnit();
    return triggers.map((trigger) => ({
      problem: 'trigger without business unit',
      ...trigger,
      repair: 'none: a command may have made it',
    }));
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
    options: ReconciliationOptions,
  ): Promise<{ findings: Finding[]; examined: number; last?: string }> {
    if (!(await this.repository.lock(manager, options.waits))) return { findings: [], examined: 0 };
    const horizonDays = this.config.GENERATION_HORIZON_DAYS;
    const page = await this.repository.examine(manager, after, { ...options, horizonDays });
    const findings: Finding[] = [];
    const requested = new Set<number>();
    for (const schedule of page) {
      const finding = this.judge(schedule);
      if (finding === null) continue;
      const repairs = options.applies && this.repairOf(finding, schedule, requested);
      findings.push(repairs ? await this.repair(manager, finding, repairs) : finding);
    }
    return { findings, examined: page.length, ...(page.length > 0 && { last: page.at(-1)!.scheduleId }) };
  }

  private judge(schedule: ExaminedSchedule): Finding | null {
    const { facilityId, scheduleId: id, suspicion } = schedule;
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

  /** What is to be done; null where nothing is. @param requested facilities whose generation is already requested */
  private repairOf(
    { problem }: Finding,
    schedule: ExaminedSchedule,
    requested: Set<number>,
  ): ((manager: EntityManager) => Promise<void>) | null {
    if (problem === 'instances of a schedule that is not Active')
      return (manager) => this.cancelInstances(manager, schedule);
    const { facilityId, now } = schedule;
    if (problem !== 'schedule without instances' || requested.has(facilityId)) return null;
    return async (manager) => {
      // By the message that a trigger's fire sends: its consumer generates for the whole facility what is missing.
      await this.outbound.store(manager, [generationRequested(facilityId, { firedAt: now })]);
      requested.add(facilityId);
    };
  }

  /** In a savepoint, so that what fails undoes nothing else. */
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
      ...{ schedule, cause, actor: null, changedAt, onlyCopies: false },
    });
  }
}

/** The findings of one check; that it failed is one. */
async function findOrName(id: string, find: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await find();
  } catch (error) {
    return [{ problem: 'check that failed', facilityId: 0, id, repair: `none: ${errorText(error)}` }];
  }
}
