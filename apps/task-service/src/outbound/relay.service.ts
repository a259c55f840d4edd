import { Injectable, Logger } from '@nestjs/common';
import type { OnApplicationBootstrap, OnApplicationShutdown } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { Metrics, ShutdownRegistry, withoutTrace } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import { DataSource } from 'typeorm';
import { LANE_COUNT } from './lanes';
import { RelayLane } from './relay-lane.handler';
import { waitingLanes } from './waiting-lanes.query';

/** Each running lane holds a database connection; requests need the others. */
const CONCURRENT_LANES = 4;
/** How long an event can wait whose replica ended between commit and publish. */
const SWEEP_INTERVAL_MS = 5 * SECOND_MS;
const FAILURE_DELAY_MS = SECOND_MS;

/** Publishes what waits in the message store: lanes that were nudged at once, all others by a sweep every five seconds. */
@Injectable()
export class RelayService implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly logger = new Logger(RelayService.name);
  private readonly wanted = new Set<number>();
  private readonly running = new Map<number, Promise<void>>();
  private readonly timers = new Set<NodeJS.Timeout>();
  private state: 'idle' | 'running' | 'stopped' = 'idle';
  private readonly counts;

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly relayLane: RelayLane,
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

  /** Publishes the lane as soon as a slot is free. */
  nudge(lane: number): void {
    if (this.state === 'stopped') return;
    this.wanted.add(lane);
    this.pump();
  }

  /** Starts no further pass and waits for those under way. */
  async stop(): Promise<void> {
    this.state = 'stopped';
    for (const timer of this.timers) clearTimeout(timer);
    this.timers.clear();
    await Promise.all(this.running.values());
  }

  private pump(): void {
    if (this.state !== 'running') return;
    for (const lane of this.wanted) {
      if (this.running.size >= CONCURRENT_LANES) return;
      // A nudge during a pass stays wanted: that pass may have selected its batch already.
      if (this.running.has(lane)) continue;
      this.wanted.delete(lane);
      // A pass publishes what many requests stored; each event brings its own trace.
      this.running.set(
        lane,
        withoutTrace(() => this.run(lane)),
      );
    }
  }

  private async run(lane: number): Promise<void> {
    let againInMs: number | null = FAILURE_DELAY_MS;
    try {
      const pass = await this.relayLane.execute(lane);
      againInMs = pass.againInMs;
      this.counts.sent.inc(pass.sent);
      this.counts.refused.inc(pass.refused);
      this.counts.parked.inc(pass.parked);
      if (pass.parked > 0) this.logger.error(`${String(pass.parked)} events parked in lane ${String(lane)}`);
    } catch (error) {
      this.logger.warn(`relay of lane ${String(lane)} failed: ${String(error)}`);
    } finally {
      this.running.delete(lane);
    }
    if (againInMs === 0) this.wanted.add(lane);
    else if (againInMs !== null)
      this.later(againInMs, () => {
        this.nudge(lane);
      });
    this.pump();
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
