import { Inject, Injectable, Logger } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import { ShutdownRegistry, withoutTrace } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import { TASK_CONFIG } from '../config';
import type { TaskServiceConfig } from '../config';
import { OutboxRepository } from './outbox.repository';
import { RelayPass } from './relay-pass.service';

/** Each pass holds a database connection, and one is left for the scheduler and the sweep. */
const MAX_CONCURRENT_PASSES = 4;
/** How long an event can wait whose replica ended between commit and publish. */
const SWEEP_INTERVAL_MS = 5 * SECOND_MS;
const FAILURE_DELAY_MS = SECOND_MS;

/** Which partition the relay takes next: the one that has waited longest, none twice at a time. */
export class PartitionQueue {
  private readonly wanted = new Set<number>();
  private readonly underWay = new Set<number>();

  /** A partition that is under way stays wanted: that pass may have selected its batch already. */
  want(partition: number): void {
    this.wanted.add(partition);
  }

  /** The partition of the next pass, now under way; null when there is nothing to do. */
  take(): number | null {
    for (const partition of this.wanted) {
      if (this.underWay.has(partition)) continue;
      this.wanted.delete(partition);
      this.underWay.add(partition);
      return partition;
    }
    return null;
  }

  /** Ends a pass. */
  release(partition: number): void {
    this.underWay.delete(partition);
  }
}

/** Publishes what waits in the outbox: partitions for which it is woken at once, all others by a sweep every five seconds. */
@Injectable()
export class RelayService implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(RelayService.name);
  private readonly queue = new PartitionQueue();
  private readonly passes = new Set<Promise<void>>();
  private readonly timers = new Set<NodeJS.Timeout>();
  private isPumpDue = false;
  private isRunning = false;

  private readonly concurrentPasses: number;

  constructor(
    @Inject(TASK_CONFIG) { DATABASE_POOL_RELAY }: Pick<TaskServiceConfig, 'DATABASE_POOL_RELAY'>,
    private readonly outbox: OutboxRepository,
    private readonly relayPass: RelayPass,
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

  /** Starts no further pass and waits for those under way. */
  async stop(): Promise<void> {
    this.isRunning = false;
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
    await Promise.all(this.passes);
  }

  private pump(): void {
    while (this.isRunning && this.passes.size < this.concurrentPasses) {
      const partition = this.queue.take();
      if (partition === null) return;
      // A pass publishes what many requests stored; each event brings its own trace.
      const pass = withoutTrace(() => this.run(partition)).finally(() => {
        this.passes.delete(pass);
        this.pump();
      });
      this.passes.add(pass);
    }
  }

  private async run(partition: number): Promise<void> {
    const nextDelayMs = await this.relayPass.run(partition).catch((error: unknown) => {
      this.logger.warn(`relay of partition ${String(partition)} failed: ${String(error)}`);
      return FAILURE_DELAY_MS;
    });
    this.queue.release(partition);
    if (nextDelayMs === 0) this.queue.want(partition);
    else if (nextDelayMs !== null) this.later(nextDelayMs, () => this.wake(partition));
  }

  private sweep(): void {
    this.later(SWEEP_INTERVAL_MS, () => this.sweep());
    this.outbox.findWaitingPartitions().then(
      (partitions) => {
        for (const partition of partitions) this.wake(partition);
      },
      (error: unknown) => {
        this.logger.warn(`outbox sweep failed: ${String(error)}`);
      },
    );
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
