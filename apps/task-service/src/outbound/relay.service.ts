import { Injectable, Logger } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Metrics, ShutdownRegistry, withoutTrace } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import { DataSource } from 'typeorm';
import { LaneQueue } from './lane-queue';
import { LANE_COUNT } from './lanes';
import { RelayLanes } from './relay-lanes.handler';
import type { RelayPass } from './relay-lanes.handler';
import { waitingLanes } from './waiting-lanes.query';

/** Each pass holds a database connection; requests need the others. A pass that has to wait must not hold up the rest. */
const CONCURRENT_PASSES = 4;
/** How long an event can wait whose replica ended between commit and publish. */
const SWEEP_INTERVAL_MS = 5 * SECOND_MS;
const FAILURE_DELAY_MS = SECOND_MS;

/** Publishes what waits in the message store: lanes that were nudged at once, all others by a sweep every five seconds. */
@Injectable()
export class RelayService implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(RelayService.name);
  private readonly queue = new LaneQueue();
  private readonly passes = new Set<Promise<void>>();
  private readonly timers = new Set<NodeJS.Timeout>();
  private isPumpDue = false;
  private state: 'idle' | 'running' | 'stopped' = 'idle';
  private readonly counts;

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly relayLanes: RelayLanes,
    metrics: Metrics,
    shutdown: ShutdownRegistry,
  ) {
    this.counts = {
      sent: metrics.counter('task_outbox_sent_total', 'Events confirmed by the broker'),
      refused: metrics.counter('task_outbox_refused_total', 'Publish attempts that the broker refused'),
      parked: metrics.counter('task_outbox_parked_total', 'Events parked after the last attempt'),
    };
    shutdown.addDrainHook({ name: 'outbox relay', drain: () => this.stop() });
  }

  onApplicationBootstrap(): void {
    this.state = 'running';
    this.sweep();
  }

  async onApplicationShutdown(): Promise<void> {
    await this.stop();
  }

  /** Publishes the lane as soon as a pass is free, together with others that are nudged until then. */
  nudge(lane: number): void {
    if (this.state === 'stopped') return;
    this.queue.want(lane);
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
    this.state = 'stopped';
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
    await Promise.all(this.passes);
  }

  private pump(): void {
    while (this.state === 'running' && this.passes.size < CONCURRENT_PASSES) {
      const lanes = this.queue.take();
      if (lanes.length === 0) return;
      // A pass publishes what many requests stored; each event brings its own trace.
      const pass = withoutTrace(() => this.run(lanes)).finally(() => {
        this.passes.delete(pass);
        this.pump();
      });
      this.passes.add(pass);
    }
  }

  private async run(lanes: readonly number[]): Promise<void> {
    try {
      const pass = await this.relayLanes.execute(lanes);
      this.queue.release(lanes, pass.apart);
      this.count(pass);
      this.again(pass.againInMs);
    } catch (error) {
      this.logger.warn(`relay of lanes ${lanes.join(', ')} failed: ${String(error)}`);
      this.queue.release(lanes, lanes);
      this.again(new Map(lanes.map((lane) => [lane, FAILURE_DELAY_MS])));
    }
  }

  private count({ sent, refused, parked }: RelayPass): void {
    this.counts.sent.inc(sent);
    this.counts.refused.inc(refused);
    this.counts.parked.inc(parked.length);
    if (parked.length > 0)
      this.logger.error(
        `${String(parked.length)} events parked, in lanes ${[...new Set(parked)].join(', ')}`,
      );
  }

  private again(waitsMs: ReadonlyMap<number, number>): void {
    for (const [lane, waitMs] of waitsMs) {
      if (waitMs === 0) this.queue.want(lane);
      else
        this.later(waitMs, () => {
          this.nudge(lane);
        });
    }
  }

  private sweep(): void {
    this.later(SWEEP_INTERVAL_MS, () => {
      this.sweep();
    });
    waitingLanes(this.dataSource).then(
      (lanes) => {
        for (const lane of lanes) this.nudge(lane % LANE_COUNT);
      },
      (error: unknown) => {
        this.logger.warn(`outbox sweep failed: ${String(error)}`);
      },
    );
  }

  private later(delayMs: number, action: () => void): void {
    if (this.state !== 'running') return;
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      action();
    }, delayMs);
    this.timers.add(timer);
  }
}
