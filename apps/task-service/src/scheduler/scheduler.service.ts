import { Injectable, Logger } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import { Metrics, ShutdownRegistry } from '@platform/service-defaults';
import { SECOND_MS, sleep } from '@platform/time';
import { FiringService } from './firing.service';
import { BATCH_SIZE } from './triggers.repository';

/** Maximum sleep. A trigger fires at most this late if the replica that created it crashed. */
const MAX_SLEEP_MS = 15 * SECOND_MS;
/** Delay if triggers are due, but other replicas have locked them. */
const TAKEN_ELSEWHERE_DELAY_MS = SECOND_MS;
/** Delay after a failed turn. */
const FAILURE_DELAY_MS = 2 * SECOND_MS;

/**
 * The scheduler of this replica, one of a cluster: fires due triggers in batches, or sleeps until the next
 * one is due. An idle replica queries the database every 15 s. A change of a trigger by this replica wakes
 * it.
 */
@Injectable()
export class SchedulerService implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(SchedulerService.name);
  private readonly counts;
  private stopping = false;
  private awake = new AbortController();
  private running: Promise<void> | null = null;

  constructor(
    private readonly firing: FiringService,
    metrics: Metrics,
    shutdown: ShutdownRegistry,
  ) {
    this.counts = {
      fired: metrics.counter('task_scheduler_fired_total', 'Occurrences fired, misfires included'),
      misfired: metrics.counter('task_scheduler_misfired_total', 'Misfires: triggers more than 1.5 h late'),
      failures: metrics.counter('task_scheduler_failures_total', 'Turns of the scheduler that failed'),
    };
    shutdown.addDrainHook({ name: 'scheduler', drain: () => this.stop() });
  }

  onApplicationBootstrap(): void {
    this.running = this.run();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.stop();
  }

  /** Wakes the scheduler, because a trigger has changed. */
  wake(): void {
    this.firing.resetStart();
    this.awake.abort();
  }

  /** Stops firing batches, and waits for the running one. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.wake();
    await this.running;
  }

  private async run(): Promise<void> {
    while (!this.stopping) {
      // Renewed before the query, so that a wake during the query is not lost.
      this.awake = new AbortController();
      const delayMs = await this.turn();
      if (delayMs > 0) await this.rest(delayMs);
    }
  }

  /** Fires the due triggers. Returns the milliseconds to rest. */
  private async turn(): Promise<number> {
    try {
      const nextDueMs = await this.firing.findNextDueDelayMs();
      if (nextDueMs === null || nextDueMs > 0) return Math.min(nextDueMs ?? MAX_SLEEP_MS, MAX_SLEEP_MS);
      return (await this.fireAll()) === 0 ? TAKEN_ELSEWHERE_DELAY_MS : 0;
    } catch (error) {
      this.counts.failures.inc();
      this.logger.warn(`scheduler turn failed: ${String(error)}`);
      return FAILURE_DELAY_MS;
    }
  }

  private async fireAll(): Promise<number> {
    for (let total = 0; ;) {
      const batch = await this.firing.fireBatch();
      this.counts.fired.inc(batch.fired);
      this.counts.misfired.inc(batch.misfired);
      total += batch.acquired;
      // After a full batch, more triggers may be due.
      if (batch.acquired < BATCH_SIZE || this.stopping) return total;
    }
  }

  private async rest(delayMs: number): Promise<void> {
    const { signal } = this.awake;
    // Rounds up, because timers count whole milliseconds: otherwise the last millisecond would be spent
    // polling.
    await sleep(Math.ceil(delayMs), signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }
}
