import { Inject, Injectable } from '@nestjs/common';
import { isStatementFailure } from '@platform/database';
import { DAY_MS } from '@platform/time';
import { TASK_CONFIG, type TaskServiceConfig } from '../config';
import { errorText } from '../outbound/publish-failure';
import { findSecondFire, nextFireAfter } from '../scheduler/due-fire';
import { TriggerPositionsRepository } from '../scheduler/trigger-positions.repository';
import { TriggersRepository } from '../scheduler/triggers.repository';
import { GeneratingSchedulesRepository } from '../stored-schedules/generating-schedules.repository';
import { parseCronExpression } from '../recurrence/cron-expression';
import { dueBetween, recurrenceOf } from '../recurrence/recurrence';
import { timeZone } from '../recurrence/time-zone';
import { GenerationPositionsRepository, type PositionedSchedule } from './generation-positions.repository';

/**
 * A position that a clock set ahead has moved into the future, or a facility for which nothing is generated.
 */
export interface PositionFinding {
  readonly problem:
    'next fire beyond the next occurrence' | 'generated beyond its instances' | 'facility without trigger';
  readonly facilityId: number;
  /** Id of the schedule; for a trigger, of its facility. */
  readonly id: string;
  readonly repair: string;
}

interface PositionOptions {
  /** Whether to repair; otherwise only report. */
  readonly applies: boolean;
  /** Minutes for which a new schedule is ignored, because its trigger may not be created yet. */
  readonly graceMinutes: number;
  readonly isStopping?: () => boolean;
}

const BEFORE_ALL = '00000000-0000-0000-0000-000000000000';
/** Maximum occurrences of a schedule that are compared with its instances. */
const COMPARED_OCCURRENCES = 1_000;
const MAX_FINDINGS = 10_000;
const GENERATED_AGAIN = 'generated again with the next fire';

/**
 * Repairs the effects of a clock that was ahead for a time: triggers whose next fire is far in the future,
 * and schedules that count as generated although instances are missing. Each repair is idempotent and skips
 * rows that another transaction has changed. Facilities without a trigger are only reported: an operator must
 * judge whether that is intended.
 */
@Injectable()
export class GenerationPositions {
  constructor(
    private readonly positions: GenerationPositionsRepository,
    private readonly schedules: GeneratingSchedulesRepository,
    private readonly triggers: TriggersRepository,
    private readonly triggerPositions: TriggerPositionsRepository,
    @Inject(TASK_CONFIG) private readonly config: Pick<TaskServiceConfig, 'GENERATION_HORIZON_DAYS'>,
  ) {}

  async reconcile(options: PositionOptions): Promise<PositionFinding[]> {
    return [...(await this.reconcileTriggers(options)), ...(await this.reconcileSchedules(options))];
  }

  private async reconcileTriggers({ applies, isStopping }: PositionOptions): Promise<PositionFinding[]> {
    const findings: PositionFinding[] = [];
    let after: number | null = 0;
    while (after !== null && isStopping?.() !== true) {
      const page = await this.triggerPositions.nextPage(after);
      const misplaced = page.rows.flatMap((trigger) => {
        const expectedAt = expectedFire(trigger, trigger.now);
        const secondAt = expectedAt === null ? null : expectedFire(trigger, expectedAt);
        if (expectedAt === null || secondAt === null) return [];
        // Tolerates one skipped fire: generation covers the time up to the second fire.
        return trigger.nextFireAt > secondAt ? [{ ...trigger, expectedAt }] : [];
      });
      const refused = applies && misplaced.length > 0 ? await this.triggerPositions.move(misplaced) : [];
      const failures = new Map(refused.map(({ item, error }) => [item.facilityId, error]));
      for (const { facilityId, expectedAt } of misplaced) {
        if (findings.length >= MAX_FINDINGS) break;
        const failure = failures.get(facilityId);
        const repair =
          failure === undefined ? `fires at ${expectedAt.toISOString()}` : `failed: ${errorText(failure)}`;
        findings.push({
          problem: 'next fire beyond the next occurrence',
          facilityId,
          id: String(facilityId),
          repair,
        });
      }
      after = page.last;
    }
    return findings;
  }

  private async reconcileSchedules(options: PositionOptions): Promise<PositionFinding[]> {
    const findings: PositionFinding[] = [];
    const reported = new Set<number>();
    const horizonDays = this.config.GENERATION_HORIZON_DAYS;
    let after: string | null = BEFORE_ALL;
    while (after !== null && options.isStopping?.() !== true) {
      const page = await this.positions.schedules(after, { ...options, horizonDays });
      for (const schedule of page.rows) {
        const { facilityId, scheduleId } = schedule;
        if (findings.length >= MAX_FINDINGS) break;
        if (schedule.isWithoutTrigger && !reported.has(facilityId) && occursWithinAYear(schedule)) {
          reported.add(facilityId);
          findings.push({
            problem: 'facility without trigger',
            facilityId,
            id: scheduleId,
            repair: 'none: schedule its generation, or remove its schedules',
          });
        }
        if (schedule.isFarAhead && (await this.hasGap(schedule))) {
          const repair = options.applies ? await this.resetGenerated(schedule) : GENERATED_AGAIN;
          findings.push({ problem: 'generated beyond its instances', facilityId, id: scheduleId, repair });
        }
      }
      after = page.last;
    }
    return findings;
  }

  /** Resets the position of a schedule. Returns the outcome, for the finding. */
  private async resetGenerated(schedule: PositionedSchedule): Promise<string> {
    try {
      await this.schedules.resetGenerated(schedule);
      return GENERATED_AGAIN;
    } catch (error) {
      if (!isStatementFailure(error)) throw error;
      return `failed: ${errorText(error)}`;
    }
  }

  /** Returns whether an instance is missing within the horizon although generation has passed it. */
  private async hasGap(schedule: PositionedSchedule): Promise<boolean> {
    const { now, facilityId, scheduleId, generatedUntil } = schedule;
    const { fire } = await this.positions.dataSource.transaction((manager) =>
      this.triggers.findNextFire(manager, facilityId),
    );
    const secondFire = fire === null ? null : findSecondFire(fire, now);
    // No gap: if the trigger fires rarely, generation goes up to its second fire.
    if (secondFire !== null && generatedUntil.getTime() <= secondFire.getTime() + DAY_MS) return false;
    const excludedDates = await this.positions.excludedDates(schedule.calendarId);
    const until = new Date(now.getTime() + this.config.GENERATION_HORIZON_DAYS * DAY_MS);
    const due = occurrencesOf({ ...schedule, excludedDates }, until, COMPARED_OCCURRENCES);
    const last = due.at(-1);
    if (last === undefined) return false;
    const instances = await this.positions.dueInstants(scheduleId, now, last);
    const known = new Set(instances.map((instant) => instant.getTime()));
    return due.some((instant) => !known.has(instant.getTime()));
  }
}

/** Returns the fire after `now`. Null for a trigger that cannot be evaluated; its next fire reports that. */
function expectedFire(
  { schedule, timeZone: zone, jitterSeconds }: { schedule: string; timeZone: string; jitterSeconds: number },
  now: Date,
): Date | null {
  return valueOrNull(() => nextFireAfter(now, jitterSeconds, parseCronExpression(schedule), timeZone(zone)));
}

function occursWithinAYear(schedule: PositionedSchedule): boolean {
  const inAYear = new Date(schedule.now.getTime() + 366 * DAY_MS);
  return occurrencesOf({ ...schedule, excludedDates: null }, inAYear, 1).length > 0;
}

/** Returns the next occurrences. Empty for a schedule that cannot be evaluated; generation reports that. */
function occurrencesOf(
  schedule: PositionedSchedule & { excludedDates: readonly string[] | null },
  until: Date,
  limit: number,
): Date[] {
  return valueOrNull(() => dueBetween(recurrenceOf(schedule), schedule.now, until, limit)) ?? [];
}

function valueOrNull<T>(evaluate: () => T): T | null {
  try {
    return evaluate();
  } catch (error) {
    if (error instanceof Error) return null;
    throw error;
  }
}
