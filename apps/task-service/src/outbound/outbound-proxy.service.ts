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
 * No attempt at the outbox starts later than this in an HTTP request: with the 3 s that a connection may
 * take, the request has waited 10 s at most when it gets its 503. Source: docs/spec-gaps.md.
 */
const HTTP_STORE_DEADLINE_MS = 7 * SECOND_MS;

/** Every event of this service leaves through here. An event passes these stages:
 *  1. stored: a row in the transaction that causes the event (`transaction`, `store`; `statement` where one
 *     statement does all of it);
 *  2. relayed after commit: the commit wakes the relay for the partition of the event (`RelayService.wake`);
 *  3. retried: what the broker did not confirm is published again with backoff, in order per facility and
 *     message type (`RelayService`);
 *  4. parked: after 20 refusals it waits for an operator.
 *
 *  Every publish waits for the broker's confirm. */
@Injectable()
export class OutboundProxy {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly outbox: OutboxRepository,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(RelayService) private readonly relay: Pick<RelayService, 'wake'>,
  ) {}

  /**
   * Runs `work` in a transaction of its own, and again as a whole after a lost connection. A commit whose
   * confirmation was lost may have happened: `work` must find that out, and gets what its attempt before that
   * commit returned.
   * @throws {DatabaseUnavailableError} when the database stays unreachable past `deadlineMs`
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
   * As `transaction`, for `work` that stores the prepared `messages` by a statement that is a transaction by
   * itself: one round trip instead of four. Their partitions are relayed as soon as it is through, also when
   * an earlier attempt had stored them.
   * @throws {DatabaseUnavailableError} when the database stays unreachable past `HTTP_STORE_DEADLINE_MS`
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

  /** Stores events in the caller's transaction: they will be published if and only if it commits. */
  async store(manager: EntityManager, events: readonly OutboundEvent[]): Promise<void> {
    if (events.length === 0) return;
    const messages = events.map((event) => this.prepare(event));
    await this.outbox.store(manager, messages);
    this.wakeAfterCommit(manager, messages);
  }

  /** The row that `store` would write, for a caller that writes it in a statement of its own; `wake` then.
   *  @throws {InvalidMessageError} if the message does not satisfy its contract */
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

  /** Has the partitions of committed messages relayed. */
  wake(messages: readonly NewOutboxMessage[]): void {
    for (const { partition } of messages) this.relay.wake(partition);
  }

  /** Has the partitions of stored messages relayed as soon as the caller's transaction has committed. */
  private wakeAfterCommit(manager: EntityManager, messages: readonly NewOutboxMessage[]): void {
    for (const { partition } of messages) {
      runAfterCommit(manager, `relay partition ${String(partition)}`, () => {
        this.relay.wake(partition);
      });
    }
  }
}
