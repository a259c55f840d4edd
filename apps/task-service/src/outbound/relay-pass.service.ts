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

/** Most events of a pass, over all its partitions. */
const BATCH_SIZE = 400;
/** Another replica publishes the partition; it may have selected its batch before our event was there. */
const LOCKED_DELAY_MS = 200;

const ALL_PARTITIONS = Array.from({ length: PARTITION_COUNT }, (_, partition) => partition);

/** What a pass leaves to do. */
export interface PassResult {
  /** Waits before the next pass over those partitions that need one, in ms. */
  readonly delaysMs: ReadonlyMap<number, number>;
  /** Wait before the first probe of the types that it paused; null if it paused none. */
  readonly probeDelayMs: number | null;
}

const NOTHING_LEFT: PassResult = { delaysMs: new Map(), probeDelayMs: null };

interface RelayedPartition {
  readonly batch: Batch;
  readonly outcome: BatchOutcome;
}

/**
 * One pass over some partitions: lock them, read their oldest events, publish these, settle them; in one
 * transaction. Events that another transaction has locked wait, and with them the later ones of their
 * facility and type.
 */
@Injectable()
export class RelayPass {
  private readonly held = new HeldChains();
  private readonly floors = new OutboxFloors();
  private readonly turns = new FacilityTurns();
  private readonly leftOut;

  constructor(
    @InjectDataSource(RELAY_POOL) private readonly dataSource: DataSource,
    private readonly outbox: OutboxRepository,
    private readonly pausedTypes: OutboxPausesRepository,
    private readonly events: EventPublisher,
    @Inject(CLOCK) private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.leftOut = metrics.counter(
      'task_outbox_locked_total',
      'Events, of each pass, that waited because another transaction had locked them or an earlier one',
    );
  }

  /**
   * Looks at the oldest events of all partitions; gives the partitions in which something waits, of a paused
   * type too: a pass leaves that out.
   */
  async findWaitingPartitions(): Promise<number[]> {
    const startedAtMs = this.clock.monotonicMs();
    const isFull = this.floors.isFullDue(startedAtMs);
    const { heads, last } = await this.readHeads(isFull);
    this.floors.note(heads, last, { isFull, startedAtMs, endedAtMs: this.clock.monotonicMs() });
    return [...new Set(heads.flatMap(({ partition, sequence }) => (sequence === null ? [] : [partition])))];
  }

  /** How much waits, without reading the dead rows that an old snapshot keeps. */
  readBacklog(): Promise<OutboxBacklog> {
    const floors = this.floors.of(ALL_PARTITIONS);
    if (floors.length === 0) return this.outbox.readBacklog();
    const messageTypes = messageTypesOf(BUSES);
    return this.outbox.readBacklogBehind({ partitions: ALL_PARTITIONS, messageTypes, floors });
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
   * A crash between publish and commit publishes again: events leave at least once, and receivers know them
   * by messageId.
   */
  async run(partitions: readonly number[]): Promise<PassResult> {
    const messageTypes = this.events.openTypes();
    if (messageTypes.length === 0) return NOTHING_LEFT;
    const limit = Math.ceil(BATCH_SIZE / partitions.length);
    const heldChains = this.held.keys(this.clock.monotonicMs());
    const floors = this.floors.of(partitions);
    // From facility to facility there is no way past the dead rows that an old snapshot keeps.
    const turns = floors.length === 0 ? this.turns.of(partitions) : [];
    const relayed = await inTransaction(
      this.dataSource,
      'READ COMMITTED',
      (manager) => this.relay(manager, { partitions, messageTypes, limit, heldChains, floors, turns }),
      // No second attempt: it would publish everything again. Partitions are this transaction's alone; pauses
      // are written in one order.
      { maxAttempts: 1 },
    );
    const delaysMs = new Map<number, number>();
    let hasPausedTypes = false;
    for (const partition of partitions) {
      const done = relayed.get(partition);
      if (done) this.events.report(done.outcome);
      if (done && done.outcome.refusedTypes.size > 0) hasPausedTypes = true;
      const turn = turns.find((each) => each.partition === partition) ?? null;
      const goesOn = done !== undefined && this.turns.note(partition, done.batch, { turn, limit });
      const delayMs = done ? this.delayMs(done, goesOn, heldChains.length > 0) : LOCKED_DELAY_MS;
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

  /** Wait before the next pass over a partition; null when nothing is known to be left of it.
   *  @param goesOn whether the batch may not have held everything
   *  @param hasLeftOut whether the batch is without chains that may be free again */
  private delayMs({ batch, outcome }: RelayedPartition, goesOn: boolean, hasLeftOut: boolean): number | null {
    const { events, read, heldChains } = batch;
    const limit = goesOn ? read : Infinity;
    const delayMs = nextPassDelayMs(events, limit, outcome, this.events.pausesAfter(outcome));
    if (read === events.length)
      return hasLeftOut ? Math.min(delayMs ?? Infinity, HELD_CHAIN_DELAY_MS) : delayMs;
    this.leftOut.inc(read - events.length);
    // A full batch may hide events of other chains, which the next one has room for.
    const isNew = this.held.note(heldChains, this.clock.monotonicMs());
    const nextMs = goesOn && isNew ? 0 : HELD_CHAIN_DELAY_MS;
    return Math.min(delayMs ?? Infinity, nextMs);
  }
}

const FIRST_PROBE_DELAY_MS = probeDelayMs(1, 'queue-refused');
