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
 * Few, so that a busy relay finds more to publish in each; two, so that one that waits for the broker holds
 * up nobody for long. Each holds a database connection, and one is left for the scheduler and the sweep.
 */
const MAX_CONCURRENT_PASSES = 2;
/** How long an event can wait whose replica ended between commit and publish. */
const SWEEP_INTERVAL_MS = 5 * SECOND_MS;
/** After a failure that was none of the connection. */
const FAILURE_DELAY_MS = SECOND_MS;
/**
 * Waits after lost connections: nobody waits for the relay, so it has the whole policy. Source: task
 * messaging spec, Limits. A sweep or a write that succeeds in between ends the wait, because then the
 * database is there.
 */
const CONNECTION_DELAYS_MS = [1, 2, 3, 4, 5].map(exponentialRetryDelayMs);

/** Which partitions the relay takes next: those that have waited longest, none twice at a time. */
export class PartitionQueue {
  private readonly wanted = new Set<number>();
  private readonly underWay = new Set<number>();
  private readonly failed = new Set<number>();

  /** A partition that is under way stays wanted: that pass may have selected its batch already. */
  want(partition: number): void {
    this.wanted.add(partition);
  }

  /**
   * The partitions of the next pass, now under way; none when there is nothing to do. One whose last pass
   * failed is alone in its pass, so that it fails no other.
   * @param passes that are free: they share what is wanted
   */
  take(passes: number): number[] {
    const free = [...this.wanted].filter((partition) => !this.underWay.has(partition));
    const [first] = free;
    const isAlone = first !== undefined && this.failed.has(first);
    const taken = isAlone
      ? [first]
      : free.filter((partition) => !this.failed.has(partition)).slice(0, Math.ceil(free.length / passes));
    for (const partition of taken) {
      this.wanted.delete(partition);
      this.underWay.add(partition);
    }
    return taken;
  }

  /** Ends a pass. */
  release(partitions: readonly number[], { failed }: { failed: boolean }): void {
    for (const partition of partitions) {
      this.underWay.delete(partition);
      if (failed) this.failed.add(partition);
      else this.failed.delete(partition);
    }
  }
}

/**
 * Publishes what waits in the outbox: partitions for which it is woken at once, all others by a sweep every
 * five seconds.
 */
@Injectable()
export class RelayService implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(RelayService.name);
  private readonly queue = new PartitionQueue();
  private readonly passes = new Set<Promise<void>>();
  private readonly rounds = new Set<Promise<void>>();
  private readonly timers = new Set<NodeJS.Timeout>();
  private isPumpDue = false;
  private isRunning = false;
  private isProbing = false;
  /** Passes in a row that lost their connection. */
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
    if (this.isPumpDue) return;
    this.isPumpDue = true;
    // What else is committed in this turn of the event loop comes along.
    setImmediate(() => {
      this.isPumpDue = false;
      this.pump();
    });
  }

  /** Starts no further pass or probe and waits for those under way. */
  async stop(): Promise<void> {
    this.isRunning = false;
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
    await Promise.all([...this.passes, ...this.rounds]);
  }

  private pump(): void {
    while (this.isRunning && this.passes.size < this.concurrentPasses) {
      const partitions = this.queue.take(this.concurrentPasses - this.passes.size);
      if (partitions.length === 0) return;
      // A pass publishes what many requests stored; each event brings its own trace.
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

  /** Probes the types that wait and are due, one round at a time. */
  private probe(): void {
    if (!this.isRunning || this.isProbing) return;
    this.isProbing = true;
    const round = withoutTrace(() => this.probeOnce()).finally(() => {
      this.isProbing = false;
      this.rounds.delete(round);
    });
    this.rounds.add(round);
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
