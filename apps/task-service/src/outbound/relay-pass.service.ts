import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { inTransaction } from '@platform/database';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { RELAY_POOL } from '../database-layout';
import { EventPublisher } from './event-publisher.service';
import { OutboxPausesRepository } from './outbox-pauses.repository';
import { OutboxRepository } from './outbox.repository';
import { nextPassDelayMs, probeDelayMs, publishBatch } from './publish-batch';

/** Most events of a pass, over all its partitions. */
const BATCH_SIZE = 400;
/** Another replica publishes the partition; it may have selected its batch before our event was there. */
const LOCKED_DELAY_MS = 200;

/** What a pass leaves to do. */
export interface PassResult {
  /** Waits before the next pass over those partitions that need one, in ms. */
  readonly delaysMs: ReadonlyMap<number, number>;
  /** Wait before the first probe of the types that it paused; null if it paused none. */
  readonly probeDelayMs: number | null;
}

const NOTHING_LEFT: PassResult = { delaysMs: new Map(), probeDelayMs: null };

/** One pass over some partitions: lock them, read their oldest events, publish these, settle them; in one transaction. */
@Injectable()
export class RelayPass {
  constructor(
    @InjectDataSource(RELAY_POOL) private readonly dataSource: DataSource,
    private readonly outbox: OutboxRepository,
    private readonly pausedTypes: OutboxPausesRepository,
    private readonly events: EventPublisher,
  ) {}

  /** A crash between publish and commit publishes again: events leave at least once, and receivers know them by messageId. */
  async run(partitions: readonly number[]): Promise<PassResult> {
    const messageTypes = this.events.openTypes();
    if (messageTypes.length === 0) return NOTHING_LEFT;
    const limit = Math.ceil(BATCH_SIZE / partitions.length);
    const relayed = await inTransaction(
      this.dataSource,
      'READ COMMITTED',
      (manager) => this.relay(manager, { partitions, messageTypes, limit }),
      // No second attempt: it would publish everything again. Partitions are this transaction's alone; pauses are written in one order.
      { maxAttempts: 1 },
    );
    const delaysMs = new Map<number, number>();
    let hasPausedTypes = false;
    for (const partition of partitions) {
      const done = relayed.get(partition);
      if (done) this.events.report(done.outcome);
      if (done && done.outcome.refusedTypes.size > 0) hasPausedTypes = true;
      const delayMs = done
        ? nextPassDelayMs(done.batch, limit, done.outcome, this.events.pausesAfter(done.outcome))
        : LOCKED_DELAY_MS;
      if (delayMs !== null) delaysMs.set(partition, delayMs);
    }
    return { delaysMs, probeDelayMs: hasPausedTypes ? FIRST_PROBE_DELAY_MS : null };
  }

  private async relay(
    manager: EntityManager,
    {
      partitions,
      messageTypes,
      limit,
    }: { partitions: readonly number[]; messageTypes: readonly string[]; limit: number },
  ) {
    const batches = await this.outbox.lockBatches(manager, partitions, messageTypes, limit);
    const publishing = this.events.begin({ isAlone: false });
    const relayed = new Map(
      await Promise.all(
        [...batches].map(
          async ([partition, batch]) =>
            [partition, { batch, outcome: await publishBatch(batch, publishing) }] as const,
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
}

const FIRST_PROBE_DELAY_MS = probeDelayMs(1, 'queue-refused');
