import { Logger } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import type { Counter, Gauge } from 'prom-client';
import type { Metrics } from '../metrics/metrics';

/** Rows per batch, few enough for a statement to finish quickly. */
const BATCH_SIZE = 1_000;
const BATCHES_PER_RUN = 100;

/**
 * Work that repeats at an interval, first after one interval. Every replica runs it, so concurrent runs on
 * several replicas must be safe. On one replica, runs do not overlap: intervals that pass during a run are
 * skipped. Shutdown waits for the current run. A counter counts runs by outcome, and a gauge holds the number
 * of failures since the last success.
 */
export abstract class RecurringJob implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly jobName = this.constructor.name;
  private readonly logger = new Logger(this.jobName);
  private readonly runOutcomes: Counter<'recurring_job' | 'outcome'>;
  private readonly consecutiveFailures: Gauge<'recurring_job'>;
  private timer: NodeJS.Timeout | undefined;
  /** The current run; null between runs. */
  private running: Promise<void> | null = null;
  /** True once the service is stopping. A run of several steps must then end after its current step. */
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

  /** Does the work once. A run with several parts tries them all, and rejects if one failed. */
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
   * Removes rows in batches of 1,000, small enough not to slow other statements, until none remains, the
   * service stops, or 100 batches are done; the next run removes the rest. Returns the number of rows
   * removed.
   * @param removeBatch removes at most `size` rows and returns their number
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

  /** Runs the work, counts its outcome, and logs a failure; the next run tries again. */
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
