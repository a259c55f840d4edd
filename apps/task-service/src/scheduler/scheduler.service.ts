import { Injectable, Logger } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import { Metrics, ShutdownRegistry } from '@platform/service-defaults';
import { SECOND_MS, sleep } from '@platform/time';
import { FiringService } from './firing.service';
import { BATCH_SIZE } from './triggers.repository';

/** How late a trigger can be that a replica created which then died. */
const LONGEST_SLEEP_MS = 15 * SECOND_MS;
/** Something is due, but other replicas are firing it. */
const TAKEN_ELSEWHERE_DELAY_MS = SECOND_MS;
const FAILURE_DELAY_MS = 2 * SECOND_MS;

/**
 * The clustered scheduler of this replica: fires due triggers batch by batch, else sleeps until the next is
 * due. An idle replica asks the database once per 15 s; a trigger that this replica changes wakes it.
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

  /** Looks at the triggers now: one has changed. */
  wake(): void {
    this.firing.forgetStart();
    this.awake.abort();
  }

  /** Fires no further batch and waits for the one under way. */
  async stop(): Promise<void> {
    this.stopping = true;
    this.wake();
    await this.running;
  }

  private async run(): Promise<void> {
    while (!this.stopping) {
      // Renewed before looking, so that a wake during the look is not lost.
      this.awake = new AbortController();
      const delayMs = await this.turn();
      if (delayMs > 0) await this.rest(delayMs);
    }
  }

  /** Fires what is due and tells how long to rest. */
  private async turn(): Promise<number> {
    try {
      const nextDueMs = await this.firing.findNextDueDelayMs();
      if (nextDueMs === null || nextDueMs > 0)
        return Math.min(nextDueMs ?? LONGEST_SLEEP_MS, LONGEST_SLEEP_MS);
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
      // A full batch is followed at once: more may be due.
      if (batch.acquired < BATCH_SIZE || this.stopping) return total;
    }
  }

  private async rest(delayMs: number): Promise<void> {
    const { signal } = this.awake;
    // Timers count whole milliseconds: round up, or the last one is spent looking again and again.
    await sleep(Math.ceil(delayMs), signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
  }
}
