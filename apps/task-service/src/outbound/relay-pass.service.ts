import { Inject, Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Bus } from '@platform/contracts';
import { inTransaction } from '@platform/database';
import { MessagePublisher } from '@platform/messaging';
import type { SerializedEnvelope } from '@platform/messaging';
import { CLOCK, Metrics } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { RELAY_POOL } from '../database-layout';
import { messageTypesOf, outboundContract } from './outbound-event';
import type { StoredMessage } from './outbox-message.entity';
import { OutboxRepository } from './outbox.repository';
import { BusPauses, nextPassDelayMs, publishBatch } from './publish-batch';
import type { BatchOutcome } from './publish-batch';

/** Most events of a pass, over all its partitions. */
const BATCH_SIZE = 400;
const CONFIRM_TIMEOUT_MS = 2 * SECOND_MS;
/** A pass starts no publish after this long; what is left takes its turn anew. */
const PASS_LIMIT_MS = SECOND_MS;
/** Another replica publishes the partition; it may have selected its batch before our event was there. */
const LOCKED_DELAY_MS = 200;

/** One pass over some partitions: lock them, read their oldest events, publish these, settle them; in one transaction. */
@Injectable()
export class RelayPass {
  private readonly logger = new Logger(RelayPass.name);
  private readonly pauses = new BusPauses();
  private readonly counts;

  constructor(
    @InjectDataSource(RELAY_POOL) private readonly dataSource: DataSource,
    private readonly outbox: OutboxRepository,
    private readonly publisher: MessagePublisher,
    @Inject(CLOCK) private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.counts = {
      sent: metrics.counter('task_outbox_sent_total', 'Events confirmed by the broker'),
      refused: metrics.counter('task_outbox_refused_total', 'Publish attempts that the broker refused'),
      parked: metrics.counter('task_outbox_parked_total', 'Events parked after the last attempt'),
    };
  }

  /** A crash between publish and commit publishes again: events leave at least once, and receivers know them by messageId.
   *  @returns the wait before the next pass over each partition in ms; none where nothing is known to be left */
  async run(partitions: readonly number[]): Promise<ReadonlyMap<number, number>> {
    const buses = this.pauses.open(this.clock.monotonicMs());
    if (buses.length === 0) return new Map();
    const limit = Math.ceil(BATCH_SIZE / partitions.length);
    const relayed = await inTransaction(
      this.dataSource,
      'READ COMMITTED',
      (manager) => this.relay(manager, { partitions, buses, limit }),
      // Nothing collides in partitions that this transaction owns; a second attempt would publish everything again.
      { maxAttempts: 1 },
    );
    const delays = new Map<number, number>();
    for (const partition of partitions) {
      const done = relayed.get(partition);
      if (done) this.count(partition, done.outcome);
      const delayMs = done
        ? nextPassDelayMs(done.batch, limit, done.outcome, this.pausesAfter(done.outcome))
        : LOCKED_DELAY_MS;
      if (delayMs !== null) delays.set(partition, delayMs);
    }
    return delays;
  }

  /** What became of each partition; nothing of those that another replica has. */
  private async relay(
    manager: EntityManager,
    { partitions, buses, limit }: { partitions: readonly number[]; buses: readonly Bus[]; limit: number },
  ) {
    const batches = await this.outbox.lockBatches(manager, partitions, messageTypesOf(buses), limit);
    const publishing = [...batches].map(
      async ([partition, batch]) => [partition, { batch, outcome: await this.publish(batch) }] as const,
    );
    const relayed = new Map(await Promise.all(publishing));
    const outcomes = [...relayed.values()].map(({ outcome }) => outcome);
    await this.outbox.settle(manager, [...batches.keys()], {
      sent: outcomes.flatMap(({ sent }) => sent),
      refused: outcomes.flatMap(({ refused }) => refused),
    });
    return relayed;
  }

  private publish(batch: readonly StoredMessage[]): Promise<BatchOutcome> {
    const endsAtMs = this.clock.monotonicMs() + PASS_LIMIT_MS;
    const publish = async (message: StoredMessage): Promise<void> => {
      const envelope = this.envelope(message);
      await this.publisher.publishEnvelope(envelope, { timeoutMs: CONFIRM_TIMEOUT_MS });
      this.pauses.reportSuccess(envelope.bus);
    };
    return publishBatch(batch, publish, () => this.clock.monotonicMs() >= endsAtMs);
  }

  private envelope(stored: StoredMessage): SerializedEnvelope {
    const { messageType, messageId, conversationId, sentAt, traceHeaders: headers } = stored;
    return this.publisher.createEnvelope<unknown>(outboundContract(messageType), stored.message, {
      ...{ messageId, conversationId: conversationId ?? undefined, sentAt, headers },
    });
  }

  private count(partition: number, { sent, refused }: BatchOutcome): void {
    const parked = refused.filter(({ delayMs }) => delayMs === null).length;
    this.counts.sent.inc(sent.length);
    this.counts.refused.inc(refused.length);
    this.counts.parked.inc(parked);
    if (parked > 0) this.logger.error(`${String(parked)} events parked, in partition ${String(partition)}`);
  }

  private pausesAfter({ outages }: BatchOutcome): Map<Bus, number> {
    const nowMs = this.clock.monotonicMs();
    return new Map([...outages].map((bus) => [bus, this.pauses.reportOutage(bus, nowMs)]));
  }
}
