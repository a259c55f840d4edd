import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { inTransaction } from '@platform/database';
import { Metrics, RecurringJob } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import { DataSource } from 'typeorm';
import { CalendarRolloutService } from './calendar-rollout.service';
import { CalendarRolloutsRepository } from './calendar-rollouts.repository';

/** Every replica looks for work this often. */
const INTERVAL_MS = 2 * SECOND_MS;

/**
 * Carries out, step by step, what changes of calendars have left over. A step is a transaction: after a crash
 * any replica goes on where the last one ended.
 */
@Injectable()
export class CalendarRolloutJob extends RecurringJob {
  private readonly log = new Logger(CalendarRolloutJob.name);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly rollout: CalendarRolloutService,
    private readonly rollouts: CalendarRolloutsRepository,
    metrics: Metrics,
  ) {
    super(INTERVAL_MS, metrics);
    metrics.sampledGauge(
      'task_calendar_rollouts_waiting',
      'Changed calendars some of whose facilities are still to generate anew',
      [],
      async () => [{ labels: {}, value: await this.rollouts.count() }],
    );
  }

  /**
   * Takes steps until there is none left that it could take; gives how many it took. A calendar whose step
   * fails holds up no other.
   */
  async run(): Promise<number> {
    const failed: string[] = [];
    let steps = 0;
    while (!this.stopping) {
      const step = await this.step(failed);
      if (step === null) break;
      if (step.error === undefined) {
        steps += 1;
        continue;
      }
      this.log.warn(`calendar ${step.calendarId}: its facilities could not be asked to generate anew`, {
        err: step.error,
      });
      failed.push(step.calendarId);
    }
    return steps;
  }

  private async step(failed: readonly string[]): Promise<{ calendarId: string; error?: unknown } | null> {
    let calendarId: string | null = null;
    try {
      await inTransaction(this.dataSource, 'READ COMMITTED', async (manager) => {
        const position = await this.rollouts.lockNext(manager, failed);
        calendarId = position?.calendarId ?? null;
        if (position !== null) await this.rollout.goOn(manager, position);
      });
      return calendarId === null ? null : { calendarId };
    } catch (error) {
      if (calendarId === null) throw error;
      return { calendarId, error };
    }
  }
}
