import { Logger } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type { Counter, Gauge } from 'prom-client';
import type { Metrics } from '../metrics/metrics';

/** Rows of a batch: a statement that removes them ends at once. */
const BATCH_SIZE = 1_000;
const BATCHES_PER_RUN = 100;

/**
 * Work that comes again and again, first after one interval. Every replica does it, so it must be safe for
 * all of them to do at once. On one replica no run begins before the last one has ended: intervals that pass
 * meanwhile are skipped. And the service ends after the one that is under way. Each run is counted by its
 * outcome, and a gauge tells how many failed since the last one that did not.
 */
export abstract class RecurringJob implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly jobName = this.constructor.name;
  private readonly logger = new Logger(this.jobName);
  private readonly runOutcomes: Counter<'recurring_job' | 'outcome'>;
  private readonly consecutiveFailures: Gauge<'recurring_job'>;
  private timer: NodeJS.Timeout | undefined;
  /** The run that is under way. */
  private running: Promise<void> | null = null;
  /** True from when the service stops: work in many steps ends after the one it is at. */
  protected stopping = false;

  protected constructor(
    private readonly intervalMs: number,
    metrics: Metrics,
  ) {
    this.runOutcomes = metrics.counter('recurring_job_runs_total', 'Runs of recurring jobs, by outcome', [
      'recurring_job',
      'outcome',
    ]);
    this.consecutiveFailures = metrics.gauge(
      'recurring_job_consecutive_failures',
      'Runs of a recurring job that failed since its last success',
      ['recurring_job'],
    );
    for (const outcome of ['succeeded', 'failed'])
      this.runOutcomes.inc({ recurring_job: this.jobName, outcome }, 0);
    this.consecutiveFailures.set({ recurring_job: this.jobName }, 0);
  }

  /** Does the work once. A run of which a part failed rejects, after it has tried the other parts. */
  abstract run(): Promise<unknown>;

  onApplicationBootstrap(): void {
    this.timer = setInterval(() => {
      this.running ??= this.runQuietly().finally(() => (this.running = null));
    }, this.intervalMs).unref();
  }

  async onApplicationShutdown(): Promise<void> {
    this.stopping = true;
    clearInterval(this.timer);
    await this.running;
  }

  /**
   * Removes batch by batch, small ones that leave the database room for others, until nothing is left, the
   * service stops or 100 are done: the rest waits for the next run. Gives how many rows were removed.
   * @param removeBatch removes at most `size` rows and counts them
   */
  protected async removeInBatches(removeBatch: (size: number) => Promise<number>): Promise<number> {
    let total = 0;
    for (let batch = 0; batch < BATCHES_PER_RUN && !this.stopping; batch += 1) {
      const removed = await removeBatch(BATCH_SIZE);
      total += removed;
      if (removed < BATCH_SIZE) break;
    }
    return total;
  }

  /** A run that fails is made up for by the next one. */
  private async runQuietly(): Promise<void> {
    if (this.stopping) return;
    try {
      await this.run();
      this.runOutcomes.inc({ recurring_job: this.jobName, outcome: 'succeeded' });
      this.consecutiveFailures.set({ recurring_job: this.jobName }, 0);
    } catch (error) {
      this.runOutcomes.inc({ recurring_job: this.jobName, outcome: 'failed' });
      this.consecutiveFailures.inc({ recurring_job: this.jobName });
      this.logger.warn('failed, and will run again', { err: error });
    }
  }
}
