import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { inTransaction } from '@platform/database';
import { Metrics, RecurringJob } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import { DataSource } from 'typeorm';
import { CalendarRolloutService } from './calendar-rollout.service';
import { CalendarRolloutsRepository } from './calendar-rollouts.repository';

/** Interval in which every replica looks for work. */
const INTERVAL_MS = 2 * SECOND_MS;

/**
 * Carries out the rollouts of changed calendars in steps. Each step is one transaction, so after a crash any
 * replica continues from the last step.
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
      'Changed calendars with facilities that have not been asked to regenerate yet',
      [],
      async () => [{ labels: {}, value: await this.rollouts.count() }],
    );
  }

  /**
   * Runs steps until none is possible. Returns their number. A calendar whose step fails is skipped for the
   * rest of this run.
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
      this.log.warn(`calendar ${step.calendarId}: cannot request generation for its facilities`, {
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
        if (position !== null) await this.rollout.advance(manager, position);
      });
      return calendarId === null ? null : { calendarId };
    } catch (error) {
      if (calendarId === null) throw error;
      return { calendarId, error };
    }
  }
}
