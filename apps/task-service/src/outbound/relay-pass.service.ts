import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { inTransaction, isStatementTimeout } from '@platform/database';
import { CLOCK, Metrics } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { RELAY_POOL } from '../database-layout';
import { EventPublisher } from './event-publisher.service';
import { FacilityTurns } from './facility-turns';
import { type Batch, HELD_CHAIN_DELAY_MS, HeldChains } from './held-events';
import { OutboxPausesRepository } from './outbox-pauses.repository';
import { messageTypesOf, PARTITION_COUNT } from './outbound-event';
import { OutboxFloors, type OutboxHead } from './outbox-floors';
import { type BatchChoice, type OutboxBacklog, OutboxRepository } from './outbox.repository';
import { type BatchOutcome, BUSES, nextPassDelayMs, probeDelayMs, publishBatch } from './publish-batch';

/** Maximum events of a pass, over all its partitions. */
const BATCH_SIZE = 400;
/**
 * Delay before the next pass if another replica holds the partition: that replica may have read its batch
 * before the newest event was stored.
 */
const LOCKED_DELAY_MS = 200;

const ALL_PARTITIONS = Array.from({ length: PARTITION_COUNT }, (_, partition) => partition);

/** Work that remains after a pass. */
export interface PassResult {
  /** Delay in ms before the next pass, for each partition that needs one. */
  readonly delaysMs: ReadonlyMap<number, number>;
  /** Delay in ms before the first probe of the types that the pass paused; null if it paused none. */
  readonly probeDelayMs: number | null;
}

const NOTHING_LEFT: PassResult = { delaysMs: new Map(), probeDelayMs: null };

interface RelayedPartition {
  readonly batch: Batch;
  readonly outcome: BatchOutcome;
}

/**
 * One pass over some partitions, in one transaction: locks them, reads their oldest events, publishes and
 * settles these. Events that another transaction has locked wait, and so do later ones of their facility and
 * type.
 */
@Injectable()
export class RelayPass {
  private readonly held = new HeldChains();
  private readonly floors = new OutboxFloors();
  private readonly turns = new FacilityTurns();
  private readonly lockedCount;

  constructor(
    @InjectDataSource(RELAY_POOL) private readonly dataSource: DataSource,
    private readonly outbox: OutboxRepository,
    private readonly pausedTypes: OutboxPausesRepository,
    private readonly events: EventPublisher,
    @Inject(CLOCK) private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.lockedCount = metrics.counter(
      'task_outbox_locked_total',
      'Events that a pass skipped because another transaction had locked them or an earlier one, counted in each pass',
    );
  }

  /**
   * Reads the oldest events of all partitions. Returns the partitions with waiting events, including those of
   * paused types, which a pass skips.
   */
  async findWaitingPartitions(): Promise<number[]> {
    const startedAtMs = this.clock.monotonicMs();
    const isFull = this.floors.isFullDue(startedAtMs);
    const { heads, last } = await this.readHeads(isFull);
    this.floors.note(heads, last, { isFull, startedAtMs, endedAtMs: this.clock.monotonicMs() });
    return [...new Set(heads.flatMap(({ partition, sequence }) => (sequence === null ? [] : [partition])))];
  }

  /** Returns the backlog, without reading the dead rows that an old snapshot keeps. */
  readBacklog(): Promise<OutboxBacklog> {
    const floors = this.floors.of(ALL_PARTITIONS);
    if (floors.length === 0) return this.outbox.readBacklog();
    const messageTypes = messageTypesOf(BUSES);
    return this.outbox.readBacklogAbove({ partitions: ALL_PARTITIONS, messageTypes, floors });
  }

  private async readHeads(isFull: boolean): ReturnType<OutboxRepository['readHeads']> {
    const messageTypes = messageTypesOf(BUSES);
    const floors = isFull ? [] : this.floors.of(ALL_PARTITIONS);
    const parts = isFull && this.floors.isSlow ? ALL_PARTITIONS.map((each) => [each]) : [ALL_PARTITIONS];
    const heads: OutboxHead[] = [];
    let last = '0';
    try {
      for (const partitions of parts) {
        const read = await this.outbox.readHeads({ partitions, messageTypes, floors });
        heads.push(...read.heads);
        last = read.last;
      }
    } catch (error) {
      if (isFull && isStatementTimeout(error)) this.floors.noteTimeout();
      throw error;
    }
    return { heads, last };
  }

  /**
   * Runs one pass. After a crash between publish and commit the events are published again: delivery is at
   * least once, and receivers deduplicate by messageId.
   */
  async run(partitions: readonly number[]): Promise<PassResult> {
    const messageTypes = this.events.openTypes();
    if (messageTypes.length === 0) return NOTHING_LEFT;
    const limit = Math.ceil(BATCH_SIZE / partitions.length);
    const heldChains = this.held.keys(this.clock.monotonicMs());
    const floors = this.floors.of(partitions);
    // Turns cannot skip the dead rows that an old snapshot keeps, so they are suspended while floors are in
    // use.
    const turns = floors.length === 0 ? this.turns.of(partitions) : [];
    const relayed = await inTransaction(
      this.dataSource,
      'READ COMMITTED',
      (manager) => this.relay(manager, { partitions, messageTypes, limit, heldChains, floors, turns }),
      // No second attempt: it would publish everything again. Deadlocks cannot occur, because the partitions
      // belong to this transaction alone, and pauses are inserted in a fixed order.
      { maxAttempts: 1 },
    );
    const delaysMs = new Map<number, number>();
    let hasPausedTypes = false;
    for (const partition of partitions) {
      const done = relayed.get(partition);
      if (done) this.events.report(done.outcome);
      if (done && done.outcome.refusedTypes.size > 0) hasPausedTypes = true;
      const turn = turns.find((each) => each.partition === partition) ?? null;
      const hasMore = done !== undefined && this.turns.note(partition, done.batch, { turn, limit });
      const delayMs = done ? this.delayMs(done, hasMore, heldChains.length > 0) : LOCKED_DELAY_MS;
      if (delayMs !== null) delaysMs.set(partition, delayMs);
    }
    return { delaysMs, probeDelayMs: hasPausedTypes ? FIRST_PROBE_DELAY_MS : null };
  }

  private async relay(manager: EntityManager, choice: BatchChoice): Promise<Map<number, RelayedPartition>> {
    const batches = await this.outbox.lockBatches(manager, choice);
    const publishing = this.events.begin({ isAlone: false });
    const relayed = new Map(
      await Promise.all(
        [...batches].map(
          async ([partition, batch]) =>
            [partition, { batch, outcome: await publishBatch(batch.events, publishing) }] as const,
        ),
      ),
    );
    const outcomes = [...relayed.values()].map(({ outcome }) => outcome);
    await this.outbox.settle(manager, [...batches.keys()], {
      sent: outcomes.flatMap(({ sent }) => sent),
      refused: outcomes.flatMap(({ refused }) => refused),
    });
    const refusedTypes = new Map(outcomes.flatMap((outcome) => [...outcome.refusedTypes]));
    await this.pausedTypes.pause(manager, [...refusedTypes.values()], FIRST_PROBE_DELAY_MS);
    return relayed;
  }

  /**
   * Returns the delay before the next pass over a partition. Null if no event is known to remain.
   * @param hasMore whether more events may wait than the batch held
   * @param hasSkipped whether the pass skipped chains whose locks may have ended
   */
  private delayMs(
    { batch, outcome }: RelayedPartition,
    hasMore: boolean,
    hasSkipped: boolean,
  ): number | null {
    const { events, read, heldChains } = batch;
    const limit = hasMore ? read : Infinity;
    const delayMs = nextPassDelayMs(events, limit, outcome, this.events.pausesAfter(outcome));
    if (read === events.length)
      return hasSkipped ? Math.min(delayMs ?? Infinity, HELD_CHAIN_DELAY_MS) : delayMs;
    this.lockedCount.inc(read - events.length);
    // Locked events may have filled the batch. The next pass skips their chains, so it can read other events
    // at once.
    const isNew = this.held.note(heldChains, this.clock.monotonicMs());
    const nextMs = hasMore && isNew ? 0 : HELD_CHAIN_DELAY_MS;
    return Math.min(delayMs ?? Infinity, nextMs);
  }
}

const FIRST_PROBE_DELAY_MS = probeDelayMs(1, 'queue-refused');
