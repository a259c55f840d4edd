import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Bus } from '@platform/contracts';
import { inTransaction } from '@platform/database';
import { MessagePublisher, createEnvelope } from '@platform/messaging';
import type { SerializedEnvelope } from '@platform/messaging';
import { CLOCK } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { BusPauses, isBusOutage } from './failures';
import { messageTypesOf, outboundContract } from './outbound-event';
import type { StoredMessage } from './outbox-message.entity';
import { OutboxRepository } from './outbox.repository';
import { nextPassDelayMs, publishBatch } from './publish-batch';
import type { BatchOutcome } from './publish-batch';

/** Namespace of the message types on the wire; an injection token. */
export const MESSAGE_NAMESPACE = Symbol('MESSAGE_NAMESPACE');

/** What one pass did. */
export interface PassResult {
  readonly sent: number;
  readonly refused: number;
  readonly parked: number;
  /** Wait before the next pass over the partition; null when nothing is known to be left of it. */
  readonly nextDelayMs: number | null;
}

const BATCH_SIZE = 200;
const CONFIRM_TIMEOUT_MS = 2 * SECOND_MS;
/** A pass starts no publish after this long; what is left takes its turn anew. */
const PASS_LIMIT_MS = SECOND_MS;
/** Another replica publishes the partition; it may have selected its batch before our event was there. */
const LOCKED_DELAY_MS = 200;

const NOTHING_DONE: PassResult = { sent: 0, refused: 0, parked: 0, nextDelayMs: null };

/** One pass over a partition: lock it, read its oldest events, publish them, settle them; in one transaction. */
@Injectable()
export class RelayPass {
  private readonly pauses = new BusPauses();

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly outbox: OutboxRepository,
    private readonly publisher: MessagePublisher,
    @Inject(MESSAGE_NAMESPACE) private readonly namespace: string,
    @Inject(CLOCK) private readonly clock: Clock,
  ) {}

  /** A crash between publish and commit publishes again: events leave at least once, and receivers know them by messageId. */
  async run(partition: number): Promise<PassResult> {
    const buses = this.pauses.open(this.clock.monotonicMs());
    if (buses.length === 0) return NOTHING_DONE;
    return inTransaction(
      this.dataSource,
      'READ COMMITTED',
      (manager) => this.relay(manager, partition, buses),
      // Nothing collides in a partition that this transaction owns; a second attempt would publish everything again.
      { maxAttempts: 1 },
    );
  }

  private async relay(manager: EntityManager, partition: number, buses: readonly Bus[]): Promise<PassResult> {
    if (!(await this.outbox.lockPartition(manager, partition)))
      return { ...NOTHING_DONE, nextDelayMs: LOCKED_DELAY_MS };
    const batch = await this.outbox.selectBatch(manager, partition, messageTypesOf(buses), BATCH_SIZE);
    const outcome = await this.publish(batch);
    await this.outbox.settle(manager, partition, outcome);
    return {
      sent: outcome.sent.length,
      refused: outcome.refused.length,
      parked: outcome.refused.filter(({ delayMs }) => delayMs === null).length,
      nextDelayMs: nextPassDelayMs(batch, BATCH_SIZE, outcome, this.pausesAfter(outcome)),
    };
  }

  private publish(batch: readonly StoredMessage[]): Promise<BatchOutcome> {
    const endsAtMs = this.clock.monotonicMs() + PASS_LIMIT_MS;
    return publishBatch(batch, {
      publish: async (message) => {
        const envelope = this.envelope(message);
        await this.publisher.publishEnvelope(envelope, { timeoutMs: CONFIRM_TIMEOUT_MS });
        this.pauses.reportSuccess(envelope.bus);
      },
      isOutage: isBusOutage,
      isTimeUp: () => this.clock.monotonicMs() >= endsAtMs,
    });
  }

  private envelope(stored: StoredMessage): SerializedEnvelope {
    return createEnvelope<unknown>(outboundContract(stored.messageType), stored.message, {
      namespace: this.namespace,
      messageId: stored.messageId,
      conversationId: stored.conversationId ?? undefined,
      sentAt: stored.sentAt,
      source: 'task-service',
      headers: stored.traceHeaders,
    });
  }

  private pausesAfter({ outages }: BatchOutcome): Map<Bus, number> {
    const nowMs = this.clock.monotonicMs();
    return new Map([...outages].map((bus) => [bus, this.pauses.reportOutage(bus, nowMs)]));
  }
}
