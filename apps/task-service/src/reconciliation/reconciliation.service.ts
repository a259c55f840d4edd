import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { inTransaction } from '@platform/database';
import { DAY_MS } from '@platform/time';
import type { EntityManager } from 'typeorm';
import { TASK_CONFIG, type TaskServiceConfig } from '../config';
import { InstancesRepository } from '../instances/instances.repository';
import { messageTypesOf, partitionOf } from '../outbound/outbound-event';
import { OutboxRepository } from '../outbound/outbox.repository';
import { planGeneration } from '../recurring-generation/generation-plan';
import { generationRequested } from '../scheduler/due-fire';
import { type ExaminedSchedule, ReconciliationRepository } from './reconciliation.repository';

/** Something that does not fit together, and what is done about it. */
export interface Finding {
  readonly problem:
    | 'schedule without instances'
    | 'instances of a schedule that is not Active'
    | 'trigger without business unit'
    | 'event of an unknown type';
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

/** Finds what a lost message or a restored database left undone, and does it again. Every repair may come twice. */
@Injectable()
export class ReconciliationService {
  constructor(
    private readonly repository: ReconciliationRepository,
    private readonly outbox: OutboxRepository,
    private readonly instances: InstancesRepository,
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
    const triggers = await this.repository.triggersWithoutBusinessUnit();
    const events = await this.repository.eventsOfOtherTypes(messageTypesOf(['main', 'scheduling']));
    return [
      ...triggers.map((trigger): Finding => {
        return {
          problem: 'trigger without business unit',
          ...trigger,
          repair: 'none: a command may have made it',
        };
      }),
      ...events.map((event): Finding => {
        return { problem: 'event of an unknown type', ...event, repair: 'none: outbox skip, then discard' };
      }),
    ];
  }

  private async reconcilePage(
    manager: EntityManager,
    after: string,
    options: ReconciliationOptions,
  ): Promise<{ findings: Finding[]; examined: number; last?: string }> {
    if (!(await this.repository.lock(manager, options.waits))) return { findings: [], examined: 0 };
    const horizonDays = this.config.GENERATION_HORIZON_DAYS;
    const page = await this.repository.examine(manager, after, { ...options, horizonDays });
    const ungenerated = page.filter((each) => each.suspicion === 'nothing-generated' && this.isDue(each));
    const inactive = page.filter(({ suspicion }) => suspicion === 'inactive');
    if (options.applies) {
      await this.requestGeneration(manager, ungenerated);
      for (const { scheduleId } of inactive) await this.cancelInstances(manager, scheduleId);
    }
    const finding = (problem: Finding['problem'], repair: string) => (each: ExaminedSchedule) => ({
      ...{ problem, facilityId: each.facilityId, id: each.scheduleId, repair },
    });
    const findings = [
      ...ungenerated.map(finding('schedule without instances', 'generation is requested')),
      ...inactive.map(finding('instances of a schedule that is not Active', 'they are cancelled')),
    ];
    return { findings, examined: page.length, ...(page.length > 0 && { last: page.at(-1)!.scheduleId }) };
  }

  private isDue(schedule: ExaminedSchedule): boolean {
    const { now } = schedule;
    const until = new Date(now.getTime() + this.config.GENERATION_HORIZON_DAYS * DAY_MS);
    const earliest = new Date(now.getTime() - this.config.GENERATION_CATCH_UP_DAYS * DAY_MS);
    const { plans } = planGeneration([schedule], { now, until, earliest }, 1);
    return plans.some(({ dueInstants }) => dueInstants.length > 0);
  }

  /** By the message that a trigger's fire sends: its consumer generates for the whole facility what is missing. */
  private async requestGeneration(
    manager: EntityManager,
    schedules: readonly ExaminedSchedule[],
  ): Promise<void> {
    const [first] = schedules;
    if (first === undefined) return;
    const { now } = first;
    const facilities = [...new Set(schedules.map(({ facilityId }) => facilityId))];
    const messages = facilities.map((facilityId) => {
      const { contract, message } = generationRequested(facilityId, { firedAt: now });
      const [messageId, messageType] = [randomUUID(), contract.name];
      return {
        ...{ partition: partitionOf(facilityId), facilityId, messageId, messageType, message },
        ...{ conversationId: null, sentAt: now, traceHeaders: {} },
      };
    });
    await this.outbox.store(manager, messages);
  }

  private async cancelInstances(manager: EntityManager, scheduleId: string): Promise<void> {
    const status = await this.repository.lockInactive(manager, scheduleId);
    if (status === null) return;
    const cause = status === 'Removed' ? 'Removal' : 'Pause';
    await this.instances.release(manager, { scheduleId, kept: [], cause, actor: null });
  }
}
