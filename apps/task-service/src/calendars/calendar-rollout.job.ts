import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { inTransaction } from '@platform/database';
import { Metrics, RecurringJob } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import { DataSource } from 'typeorm';
import { CalendarRolloutService } from './calendar-rollout.service';
import { CalendarRolloutsRepository } from './calendar-rollouts.repository';

/** Every replica looks for work this often. */
const INTERVAL_MS = 2 * SECOND_MS;

/** Carries out, step by step, what changes of calendars have left over. A step is a transaction: after a crash any replica goes on where the
 *  last one ended. */
@Injectable()
export class CalendarRolloutJob extends RecurringJob {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly rollout: CalendarRolloutService,
    rollouts: CalendarRolloutsRepository,
    metrics: Metrics,
  ) {
    super(INTERVAL_MS, metrics);
    metrics.sampledGauge(
      'task_calendar_rollouts_waiting',
      'Changed calendars some of whose facilities are still to generate anew',
      [],
      async () => [{ labels: {}, value: await rollouts.count() }],
    );
  }

  /** Takes steps until there is none left that it could take; gives how many it took. */
  async run(): Promise<number> {
    let steps = 0;
    while (!this.stopping && (await this.step())) steps += 1;
    return steps;
  }

  private step(): Promise<boolean> {
    return inTransaction(this.dataSource, 'READ COMMITTED', (manager) => this.rollout.goOn(manager));
  }
}
