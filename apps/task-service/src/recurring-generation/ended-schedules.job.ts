import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { allOrEach, inTransaction, isConnectionError } from '@platform/database';
import { Metrics, RecurringJob } from '@platform/service-defaults';
import { MINUTE_MS } from '@platform/time';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { InstanceGenerationService } from './instance-generation.service';
import {
  type EndingSchedule,
  GeneratingSchedulesRepository,
} from '../stored-schedules/generating-schedules.repository';
import { RecurrenceError, recurrenceOf } from '../recurrence/recurrence';

const PAGE_SIZE = 500;

interface EndedPage {
  readonly ended: number;
  /** Schedules whose end has passed and whose last occurrences no trigger will generate. */
  readonly ungenerated: readonly EndingSchedule[];
  /** Last schedule of the page; null if no page follows. */
  readonly last: EndingSchedule | null;
}

/**
 * Marks schedules as ended once a minute: they no longer count against limits, and are skipped when their
 * facility's trigger fires. As with every change of a schedule, its earlier occurrences are generated first.
 */
@Injectable()
export class EndedSchedulesJob extends RecurringJob {
  private readonly log = new Logger(EndedSchedulesJob.name);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly schedules: GeneratingSchedulesRepository,
    private readonly generation: InstanceGenerationService,
    metrics: Metrics,
  ) {
    super(MINUTE_MS, metrics);
  }

  /** Returns the number of schedules marked. */
  async run(): Promise<number> {
    let total = 0;
    let after: EndingSchedule | null = null;
    do {
      const { ended, ungenerated, last } = await this.endNextPage(after);
      total += ended;
      for (const schedule of ungenerated) {
        if (this.stopping) break;
        if (await this.generateRest(schedule)) total += 1;
      }
      after = last;
    } while (after !== null && !this.stopping);
    return total;
  }

  private endNextPage(after: EndingSchedule | null): Promise<EndedPage> {
    return inTransaction(this.dataSource, 'READ COMMITTED', (manager) => this.endPage(manager, after));
  }

  private async endPage(manager: EntityManager, after: EndingSchedule | null): Promise<EndedPage> {
    const page = await this.schedules.lockEnding(manager, after, PAGE_SIZE);
    const last = page.at(-1) ?? null;
    if (last === null) return { ended: 0, ungenerated: [], last };
    const past = page.filter((schedule) => isPast(schedule, schedule.now));
    const over = past.filter((schedule) => isPast(schedule, schedule.generatedUntil));
    const refused = await allOrEach(manager, over, (savepoint, some) =>
      this.schedules.markEnded(
        savepoint,
        some.map(({ scheduleId }) => scheduleId),
        last.now,
      ),
    );
    for (const { item, error } of refused) this.logFailure(item, error);
    const ungenerated = past.filter((schedule) => !schedule.isGenerated && !over.includes(schedule));
    return {
      ended: over.length - refused.length,
      ungenerated,
      last: page.length < PAGE_SIZE ? null : last,
    };
  }

  /**
   * Generates the last occurrences of an ended schedule, which also marks the schedule as ended. Returns
   * false if another run must continue. Uses a transaction per schedule, because there may be many instances.
   */
  private async generateRest(schedule: EndingSchedule): Promise<boolean> {
    try {
      const caughtUp = await inTransaction(this.dataSource, 'READ COMMITTED', (manager) =>
        this.generation.catchUp(manager, schedule, schedule.now),
      );
      return caughtUp.isComplete && caughtUp.isEvaluable;
    } catch (error) {
      if (isConnectionError(error)) throw error;
      this.logFailure(schedule, error);
      return false;
    }
  }

  private logFailure({ scheduleId }: EndingSchedule, error: unknown): void {
    this.log.error(`schedule ${scheduleId}: cannot be marked as ended: ${String(error)}`);
  }
}

/**
 * Returns whether the schedule's end is not after the instant. False for a schedule that cannot be evaluated,
 * because its end is unknown.
 */
function isPast(schedule: EndingSchedule, instant: Date): boolean {
  const end = endOf(schedule);
  return end !== null && end <= instant;
}

function endOf(schedule: EndingSchedule): Date | null {
  try {
    return recurrenceOf({ ...schedule, excludedDates: null }).endsAt;
  } catch (error) {
    if (error instanceof RecurrenceError) return null;
    throw error;
  }
}
