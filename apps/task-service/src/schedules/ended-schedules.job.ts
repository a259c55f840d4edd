import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { inTransaction } from '@platform/database';
import { Metrics, RecurringJob } from '@platform/service-defaults';
import { MINUTE_MS } from '@platform/time';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { type EndingSchedule, GeneratingSchedulesRepository } from './generating-schedules.repository';
import { RecurrenceError, recurrenceOf } from './recurrence';

const PAGE_SIZE = 500;

interface EndedPage {
  readonly ended: number;
  /** Null when no other page follows. */
  readonly last: EndingSchedule | null;
}

/** Notes once a minute which schedules have ended: they count against no limit any more, and cost nothing when their facility's trigger
 *  fires. */
@Injectable()
export class EndedSchedulesJob extends RecurringJob {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly schedules: GeneratingSchedulesRepository,
    metrics: Metrics,
  ) {
    super(MINUTE_MS, metrics);
  }

  /** Gives how many have ended. */
  async run(): Promise<number> {
    let total = 0;
    let after: EndingSchedule | null = null;
    do {
      const { ended, last } = await this.inPages(after);
      total += ended;
      after = last;
    } while (after !== null && !this.stopping);
    return total;
  }

  private inPages(after: EndingSchedule | null): Promise<EndedPage> {
    return inTransaction(this.dataSource, 'READ COMMITTED', (manager) => this.endPage(manager, after));
  }

  private async endPage(manager: EntityManager, after: EndingSchedule | null): Promise<EndedPage> {
    const page = await this.schedules.lockEnding(manager, after, PAGE_SIZE);
    const ended = page.filter(isOver).map(({ scheduleId }) => scheduleId);
    const last = page.at(-1) ?? null;
    if (last !== null) await this.schedules.markEnded(manager, ended, last.now);
    return { ended: ended.length, last: page.length < PAGE_SIZE ? null : last };
  }
}

/** Its end is behind it, and so is the generation of what it was due at before, if there is any to come. One that cannot be evaluated has
 *  not ended: nobody knows. */
function isOver(schedule: EndingSchedule): boolean {
  const end = endOf(schedule);
  if (end === null || end >= schedule.now) return false;
  return !schedule.isGenerated || schedule.generatedUntil >= end;
}

function endOf(schedule: EndingSchedule): Date | null {
  try {
    return recurrenceOf({ ...schedule, excludedDates: null }).endsAt;
  } catch (error) {
    if (error instanceof RecurrenceError) return null;
    throw error;
  }
}
