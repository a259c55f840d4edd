import { randomUUID } from 'node:crypto';
import { Inject, Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import {
  DatabaseUnavailableError,
  inStatement,
  inTransaction,
  isConnectionError,
  withConnectionRetry,
} from '@platform/database';
import { MessagePublisher, createEnvelope, messageTraceHeaders } from '@platform/messaging';
import type { SerializedEnvelope } from '@platform/messaging';
import { CLOCK } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import type { EntityManager } from 'typeorm';
import { runAfterCommit } from './after-commit';
import { insertOutboxMessages } from './insert-outbox-messages.query';
import type { OutboxMessage } from './insert-outbox-messages.query';
import { laneOf } from './lanes';
import type { OutboundEvent } from './outbound-event';
import { RelayService } from './relay.service';

/** Namespace of the message types on the wire; an injection token. */
export const MESSAGE_NAMESPACE = Symbol('MESSAGE_NAMESPACE');

/** No attempt at the message store starts later than this in an HTTP request: with the 3 s that a connection may take, the
 *  request has waited 10 s at most when it is answered 503. Source: docs/spec-gaps.md. */
const HTTP_STORE_DEADLINE_MS = 7 * SECOND_MS;

/** Every event of this service leaves through here. Its strategies, in order:
 *  1. message store: the event is a row in the transaction that causes it (`transaction`, `store`;
 *     `statement` where one statement does all of it);
 *  2. at once: after the commit the relay of its lane is nudged (`RelayService.nudge`);
 *  3. relay: what was not confirmed is tried again with backoff, in order per facility (`RelayService`);
 *  4. parked: after 20 refusals an event waits for an operator;
 *  5. direct: an event that no state is tied to is published without the store when that cannot be reached (`announce`).
 *  There is no sixth: nothing is ever sent without a confirm. */
@Injectable()
export class OutboundProxy {
  private readonly logger = new Logger(OutboundProxy.name);

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly publisher: MessagePublisher,
    @Inject(MESSAGE_NAMESPACE) private readonly namespace: string,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(RelayService) private readonly relay: Pick<RelayService, 'nudge'>,
  ) {}

  /** Runs `work` in a transaction of its own, and again as a whole after a lost connection. A commit whose confirmation was
   *  lost may have happened: `work` must find that out.
   *  @throws {DatabaseUnavailableError} when the store stays unreachable past `deadlineMs` */
  transaction<T>(
    work: (manager: EntityManager) => Promise<T>,
    { deadlineMs = HTTP_STORE_DEADLINE_MS }: { deadlineMs?: number } = {},
  ): Promise<T> {
    return withConnectionRetry(() => inTransaction(this.dataSource, 'READ COMMITTED', work, { deadlineMs }), {
      deadlineMs,
      clock: this.clock,
    });
  }

  /** As `transaction`, for `work` that stores the prepared `messages` by a statement that is a transaction by itself: one
   *  round trip instead of four. Their lanes are relayed as soon as it is through, also when an earlier attempt had stored them.
   *  @throws {DatabaseUnavailableError} when the store stays unreachable past `HTTP_STORE_DEADLINE_MS` */
  async statement<T>(
    messages: readonly OutboxMessage[],
    work: (dataSource: DataSource) => Promise<T>,
  ): Promise<T> {
    const deadlineMs = HTTP_STORE_DEADLINE_MS;
    const result = await withConnectionRetry(
      () => inStatement(this.dataSource, () => work(this.dataSource), { deadlineMs }),
      { deadlineMs, clock: this.clock },
    );
    for (const { lane } of messages) this.relay.nudge(lane);
    return result;
  }

  /** Stores events in the caller's transaction: they will be published if and only if it commits. */
  async store(manager: EntityManager, events: readonly OutboundEvent[]): Promise<void> {
    if (events.length === 0) return;
    const messages = events.map((event) => this.prepare(event));
    await insertOutboxMessages(manager, messages);
    this.nudgeAfterCommit(manager, messages);
  }

  /** The row that `store` would write, for a caller that writes it in a statement of its own; `nudgeAfterCommit` then. */
  prepare(event: OutboundEvent): OutboxMessage {
    const { facilityId } = event;
    return { lane: laneOf(facilityId), facilityId, envelope: this.envelope(event) };
  }

  /** Has the lanes of stored messages relayed as soon as the caller's transaction has committed. */
  nudgeAfterCommit(manager: EntityManager, messages: readonly OutboxMessage[]): void {
    for (const { lane } of messages) {
      runAfterCommit(manager, `relay lane ${String(lane)}`, () => {
        this.relay.nudge(lane);
      });
    }
  }

  /** Sends an event that no state is tied to: through the store, or, while that cannot be reached, by a confirmed publish.
   *  @throws whatever the publisher throws when that fails too: the caller hears that the event was not sent */
  async announce(event: OutboundEvent): Promise<void> {
    try {
      await this.transaction((manager) => this.store(manager, [event]));
    } catch (error) {
      if (!(error instanceof DatabaseUnavailableError) && !isConnectionError(error)) throw error;
      this.logger.warn(`message store unreachable, publishing ${event.contract.name} directly`);
      await this.publisher.publishEnvelope(this.envelope(event));
    }
  }

  private envelope(event: OutboundEvent): SerializedEnvelope {
    return createEnvelope(event.contract, event.message, {
      namespace: this.namespace,
      messageId: event.messageId ?? randomUUID(),
      conversationId: event.conversationId,
      sentAt: this.clock.now(),
      source: 'task-service',
      // Stored with the event: whenever it is published, it is in the trace of what caused it.
      headers: messageTraceHeaders(),
    });
  }
}
