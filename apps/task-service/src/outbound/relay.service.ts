import { Inject, Injectable, Logger } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import { DatabaseUnavailableError, isConnectionError } from '@platform/database';
import { ShutdownRegistry, withoutTrace } from '@platform/service-defaults';
import { SECOND_MS, exponentialRetryDelayMs } from '@platform/time';
import { TASK_CONFIG } from '../config';
import type { TaskServiceConfig } from '../config';
import { PARTITION_COUNT } from './outbound-event';
import { RelayPass } from './relay-pass.service';
import { TypeProbe } from './type-probe.service';

/**
 * Maximum concurrent passes. Two, so that a pass that waits for the broker does not block the other
 * partitions; no more, so that each pass of a busy relay finds more to publish. Each pass holds a database
 * connection; one connection remains for the scheduler and the sweep.
 */
const MAX_CONCURRENT_PASSES = 2;
/** Interval of the sweep, which finds events whose replica crashed between commit and publish. */
const SWEEP_INTERVAL_MS = 5 * SECOND_MS;
/** Delay after a failure other than a lost connection. */
const FAILURE_DELAY_MS = SECOND_MS;
/**
 * Delays after consecutive lost connections. No request waits for the relay, so it uses the whole retry
 * policy. Source: task messaging spec, Limits. A sweep or a write that succeeds ends the delay, because the
 * database is reachable again.
 */
const CONNECTION_DELAYS_MS = [1, 2, 3, 4, 5].map(exponentialRetryDelayMs);

/** Queue of partitions for the next passes: longest waiting first, each in one pass at a time. */
export class PartitionQueue {
  private readonly waiting = new Set<number>();
  private readonly running = new Set<number>();
  private readonly failed = new Set<number>();

  /**
   * Adds a partition. It is added even while a pass over it runs, because that pass may have read its batch
   * already.
   */
  want(partition: number): void {
    this.waiting.add(partition);
  }

  /**
   * Returns the partitions of the next pass and marks them as running; none if none wait. A partition whose
   * last pass failed gets a pass of its own, so that it does not fail others.
   * @param passes number of free passes, among which the waiting partitions are divided
   */
  take(passes: number): number[] {
    const free = [...this.waiting].filter((partition) => !this.running.has(partition));
    const [first] = free;
    const isAlone = first !== undefined && this.failed.has(first);
    const taken = isAlone
      ? [first]
      : free.filter((partition) => !this.failed.has(partition)).slice(0, Math.ceil(free.length / passes));
    for (const partition of taken) {
      this.waiting.delete(partition);
      this.running.add(partition);
    }
    return taken;
  }

  /** Records the end of a pass. */
  release(partitions: readonly number[], { failed }: { failed: boolean }): void {
    for (const partition of partitions) {
      this.running.delete(partition);
      if (failed) this.failed.add(partition);
      else this.failed.delete(partition);
    }
  }
}

/**
 * Publishes the events in the outbox: a partition at once when it is woken, all others by a sweep every 5 s.
 */
@Injectable()
export class RelayService implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(RelayService.name);
  private readonly queue = new PartitionQueue();
  private readonly passes = new Set<Promise<void>>();
  private readonly probes = new Set<Promise<void>>();
  private readonly timers = new Set<NodeJS.Timeout>();
  private isPumpScheduled = false;
  private isRunning = false;
  private isProbing = false;
  /** Consecutive passes that lost their connection. */
  private lostConnections = 0;

  private readonly concurrentPasses: number;

  constructor(
    @Inject(TASK_CONFIG) { DATABASE_POOL_RELAY }: Pick<TaskServiceConfig, 'DATABASE_POOL_RELAY'>,
    private readonly relayPass: RelayPass,
    private readonly typeProbe: TypeProbe,
    shutdown: ShutdownRegistry,
  ) {
    this.concurrentPasses = Math.min(MAX_CONCURRENT_PASSES, DATABASE_POOL_RELAY - 1);
    shutdown.addDrainHook({ name: 'outbox relay', drain: () => this.stop() });
  }

  onApplicationBootstrap(): void {
    this.isRunning = true;
    this.sweep();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.stop();
  }

  /** Publishes the partition as soon as a pass is free. */
  wake(partition: number): void {
    this.queue.want(partition);
    if (this.isPumpScheduled) return;
    this.isPumpScheduled = true;
    // Deferred to the end of this turn of the event loop, so that the pass also includes what is committed
    // during it.
    setImmediate(() => {
      this.isPumpScheduled = false;
      this.pump();
    });
  }

  /** Stops starting passes and probes, and waits for those that are running. */
  async stop(): Promise<void> {
    this.isRunning = false;
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
    await Promise.all([...this.passes, ...this.probes]);
  }

  private pump(): void {
    while (this.isRunning && this.passes.size < this.concurrentPasses) {
      const partitions = this.queue.take(this.concurrentPasses - this.passes.size);
      if (partitions.length === 0) return;
      // No trace of its own: a pass publishes events of many requests, each with its own trace.
      const pass = withoutTrace(() => this.run(partitions)).finally(() => {
        this.passes.delete(pass);
        this.pump();
      });
      this.passes.add(pass);
    }
  }

  private async run(partitions: readonly number[]): Promise<void> {
    try {
      const { delaysMs, probeDelayMs } = await this.relayPass.run(partitions);
      this.lostConnections = 0;
      this.queue.release(partitions, { failed: false });
      for (const [partition, delayMs] of delaysMs) this.wakeLater(partition, delayMs);
      if (probeDelayMs !== null) this.later(probeDelayMs, () => this.probe());
    } catch (error) {
      this.logger.warn(`relay of partitions ${partitions.join()} failed: ${String(error)}`);
      this.queue.release(partitions, { failed: true });
      const delayMs = this.failureDelayMs(error);
      for (const partition of partitions) this.wakeLater(partition, delayMs);
    }
  }

  private failureDelayMs(error: unknown): number {
    if (!(error instanceof DatabaseUnavailableError) && !isConnectionError(error)) return FAILURE_DELAY_MS;
    const delayMs = CONNECTION_DELAYS_MS[this.lostConnections] ?? CONNECTION_DELAYS_MS.at(-1);
    this.lostConnections += 1;
    return delayMs ?? FAILURE_DELAY_MS;
  }

  private wakeLater(partition: number, delayMs: number): void {
    if (delayMs === 0) this.queue.want(partition);
    else this.later(delayMs, () => this.wake(partition));
  }

  private sweep(): void {
    this.later(SWEEP_INTERVAL_MS, () => this.sweep());
    this.probe();
    this.relayPass.findWaitingPartitions().then(
      (partitions) => {
        for (const partition of partitions) this.wake(partition);
      },
      (error: unknown) => {
        this.logger.warn(`outbox sweep failed: ${String(error)}`);
      },
    );
  }

  /** Probes the paused types that are due, one round at a time. */
  private probe(): void {
    if (!this.isRunning || this.isProbing) return;
    this.isProbing = true;
    const round = withoutTrace(() => this.probeOnce()).finally(() => {
      this.isProbing = false;
      this.probes.delete(round);
    });
    this.probes.add(round);
  }

  private async probeOnce(): Promise<void> {
    try {
      const { hasReleased, delayMs } = await this.typeProbe.run();
      if (hasReleased)
        for (let partition = 0; partition < PARTITION_COUNT; partition += 1) this.wake(partition);
      if (delayMs !== null) this.later(delayMs, () => this.probe());
    } catch (error) {
      this.logger.warn(`probe of refused types failed: ${String(error)}`);
    }
  }

  private later(delayMs: number, action: () => void): void {
    if (!this.isRunning) return;
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      action();
    }, delayMs);
    this.timers.add(timer);
  }
}
