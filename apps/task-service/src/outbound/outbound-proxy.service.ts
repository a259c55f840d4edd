import { randomUUID } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { readMessage } from '@platform/contracts';
import { inStatement, inTransaction, withConnectionRetry } from '@platform/database';
import { messageTraceHeaders } from '@platform/messaging';
import { CLOCK } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { runAfterCommit } from './after-commit.service';
import { partitionOf } from './outbound-event';
import type { OutboundEvent } from './outbound-event';
import type { NewOutboxMessage } from './outbox-message.entity';
import { OutboxRepository } from './outbox.repository';
import { RelayService } from './relay.service';

/**
 * Time after which an HTTP request starts no further attempt to store. With up to 3 s for a connection, the
 * request gets its 503 after at most 10 s. Source: docs/spec-gaps.md.
 */
const HTTP_STORE_DEADLINE_MS = 7 * SECOND_MS;

/**
 * Stores every event that this service publishes. The stages of an event:
 * - Stored: a row in the transaction that causes the event (`transaction` and `store`, or `statement` if one
 *   statement does all of it).
 * - Relayed after the commit, which wakes the relay for the event's partition (`RelayService.wake`).
 * - Retried: an event that the broker did not confirm is published again with backoff, in order per facility
 *   and message type (`RelayService`).
 * - Parked: after 20 refusals it waits for an operator.
 *
 * Every publish waits for the broker's confirm.
 */
@Injectable()
export class OutboundProxy {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly outbox: OutboxRepository,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(RelayService) private readonly relay: Pick<RelayService, 'wake'>,
  ) {}

  /**
   * Runs `work` in its own transaction, and repeats it as a whole after a lost connection. If the
   * confirmation of a commit was lost, the commit may have happened: `work` must check, and gets as
   * `unconfirmed` the result of the attempt before that commit.
   * @throws {DatabaseUnavailableError} if the database stays unreachable past `deadlineMs`
   */
  transaction<T>(
    work: (manager: EntityManager, unconfirmed: T | null) => Promise<T>,
    { deadlineMs = HTTP_STORE_DEADLINE_MS }: { deadlineMs?: number } = {},
  ): Promise<T> {
    let unconfirmed: T | null = null;
    const attempt = async (manager: EntityManager): Promise<T> => {
      const result = await work(manager, unconfirmed);
      unconfirmed = result;
      return result;
    };
    return withConnectionRetry(
      () => inTransaction(this.dataSource, 'READ COMMITTED', attempt, { deadlineMs }),
      { deadlineMs, clock: this.clock },
    );
  }

  /**
   * Like `transaction`, for `work` that stores the prepared `messages` with one statement, which is a
   * transaction by itself: one round trip instead of four. Wakes the relay for their partitions afterwards,
   * also if an earlier attempt had stored them.
   * @throws {DatabaseUnavailableError} if the database stays unreachable past `HTTP_STORE_DEADLINE_MS`
   */
  async statement<T>(
    messages: readonly NewOutboxMessage[],
    work: (dataSource: DataSource) => Promise<T>,
  ): Promise<T> {
    const deadlineMs = HTTP_STORE_DEADLINE_MS;
    const result = await withConnectionRetry(
      () => inStatement(this.dataSource, () => work(this.dataSource), { deadlineMs }),
      { deadlineMs, clock: this.clock },
    );
    this.wake(messages);
    return result;
  }

  /** Stores events in the caller's transaction. They are published if and only if it commits. */
  async store(manager: EntityManager, events: readonly OutboundEvent[]): Promise<void> {
    if (events.length === 0) return;
    const messages = events.map((event) => this.prepare(event));
    await this.outbox.store(manager, messages);
    this.wakeAfterCommit(manager, messages);
  }

  /**
   * Returns the outbox row of an event, for a caller that inserts it with its own statement and then calls
   * `wake`.
   * @throws {InvalidMessageError} if the message does not satisfy its contract
   */
  prepare({ contract, message, facilityId, conversationId }: OutboundEvent): NewOutboxMessage {
    return {
      partition: partitionOf(facilityId),
      facilityId,
      messageId: randomUUID(),
      messageType: contract.name,
      conversationId: conversationId ?? null,
      sentAt: this.clock.now(),
      traceHeaders: messageTraceHeaders(),
      message: readMessage<unknown>(contract, message),
    };
  }

  /** Wakes the relay for the partitions of committed messages. */
  wake(messages: readonly NewOutboxMessage[]): void {
    for (const { partition } of messages) this.relay.wake(partition);
  }

  /** Wakes the relay for the partitions of stored messages after the caller's transaction has committed. */
  private wakeAfterCommit(manager: EntityManager, messages: readonly NewOutboxMessage[]): void {
    for (const { partition } of messages) {
      runAfterCommit(manager, `relay partition ${String(partition)}`, () => {
        this.relay.wake(partition);
      });
    }
  }
}
