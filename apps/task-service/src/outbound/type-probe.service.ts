import { Injectable, Logger } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { inTransaction } from '@platform/database';
import { Metrics } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import { DataSource } from 'typeorm';
import { RELAY_POOL } from '../database-layout';
import { EventPublisher } from './event-publisher.service';
import { OutboxPausesRepository } from './outbox-pauses.repository';
import type { ClaimedType } from './outbox-pauses.repository';
import type { StoredMessage } from './outbox-message.entity';
import { OutboxRepository } from './outbox.repository';
import { emptyOutcome, probeDelayMs, publishOne } from './publish-batch';
import type { BatchOutcome } from './publish-batch';

/**
 * Size of a probe that ends the pause if it succeeds. Until then each success doubles the size: a subscriber
 * that has room for a few events again must not receive the whole backlog, and other subscribers must not
 * receive copies of what it refuses.
 */
const LAST_PROBE_SIZE = 128;
/**
 * Delay before the next probe if one was inconclusive: the bus is down, all events are locked, or the probe
 * failed.
 */
const FAILED_PROBE_DELAY_MS = 5 * SECOND_MS;

/** Result of a probe. */
interface ProbeResult {
  /** Delay in ms before the next probe; null if the pause has ended. */
  readonly delayMs: number | null;
}

/**
 * Probes whether the broker accepts paused types again. One replica publishes the oldest event of a type, and
 * more as long as they are accepted. No transaction is open during a probe and no partition is locked, so
 * other types are published meanwhile.
 */
@Injectable()
export class TypeProbe {
  private readonly logger = new Logger(TypeProbe.name);

  constructor(
    @InjectDataSource(RELAY_POOL) private readonly dataSource: DataSource,
    private readonly outbox: OutboxRepository,
    private readonly pauses: OutboxPausesRepository,
    private readonly events: EventPublisher,
    metrics: Metrics,
  ) {
    metrics.sampledGauge(
      'task_outbox_type_paused_seconds',
      'Seconds since a message type was paused because the broker refuses its events',
      ['message', 'reason'],
      async () =>
        (await this.pauses.findPaused()).map(({ messageType: message, reason, seconds }) => ({
          labels: { message, reason },
          value: seconds,
        })),
    );
  }

  /**
   * Probes every type that is due. Each is probed independently: a failure of one does not affect the others.
   * Returns whether a pause has ended, and the delay in ms before the next probe, which is null if none of
   * the probed types is still paused.
   */
  async run(): Promise<{ hasReleased: boolean; delayMs: number | null }> {
    const types = await this.pauses.claimDue(this.events.openTypes());
    const results = await Promise.all(types.map((type) => this.probe(type)));
    const delays = results.map(({ delayMs }) => delayMs).filter((delayMs) => delayMs !== null);
    return {
      hasReleased: delays.length < results.length,
      delayMs: delays.length === 0 ? null : Math.min(...delays),
    };
  }

  private async probe(type: ClaimedType): Promise<ProbeResult> {
    try {
      const { events, read } = await this.pauses.findProbe(type);
      if (events.length === 0 && read > 0) return await this.waitForLocks(type);
      const outcome = await this.publishOldest(events);
      const result = await this.settle(type, outcome);
      this.events.report(outcome);
      return result;
    } catch (error) {
      this.logger.warn(`probe of ${type.messageType} failed: ${String(error)}`);
      return { delayMs: FAILED_PROBE_DELAY_MS };
    }
  }

  /** Publishes the events one after the other, so that at most one is refused. */
  private async publishOldest(events: readonly StoredMessage[]): Promise<BatchOutcome> {
    const outcome = emptyOutcome();
    const publishing = this.events.begin({ isAlone: true });
    for (const event of events) {
      if (publishing.isTimeUp() || !(await publishOne(event, publishing, outcome))) break;
    }
    return outcome;
  }

  /** Postpones the probe: other transactions have locked all events that it could publish. */
  private async waitForLocks({ messageType }: ClaimedType): Promise<ProbeResult> {
    await this.pauses.postpone(this.dataSource.manager, messageType, FAILED_PROBE_DELAY_MS);
    return { delayMs: FAILED_PROBE_DELAY_MS };
  }

  private settle(type: ClaimedType, outcome: BatchOutcome): Promise<ProbeResult> {
    const { messageType, probeSize } = type;
    const { sent, refused } = outcome;
    const partitions = [...new Set([...sent, ...refused].map(({ partition }) => partition))];
    return inTransaction(this.dataSource, 'READ COMMITTED', async (manager) => {
      await this.outbox.limitLockWait(manager);
      await this.outbox.settle(manager, partitions, outcome);
      if (outcome.outages.size > 0) {
        this.events.pausesAfter(outcome);
        await this.pauses.postpone(manager, messageType, FAILED_PROBE_DELAY_MS);
        return { delayMs: FAILED_PROBE_DELAY_MS };
      }
      const refusedType = outcome.refusedTypes.get(messageType);
      if (refusedType !== undefined) {
        const { reason, error: lastError } = refusedType;
        const refusals = sent.length > 0 ? 1 : type.refusals + 1;
        const delayMs = probeDelayMs(refusals, reason);
        const next = { messageType, reason, lastError, refusals, probeSize: 1, delayMs };
        await this.pauses.continuePause(manager, next);
        return { delayMs };
      }
      const isEmpty = sent.length === 0 && refused.length === 0;
      if (isEmpty || probeSize >= LAST_PROBE_SIZE) {
        await this.pauses.release(manager, messageType);
        const why = isEmpty
          ? 'the pause ends, because no event is left to probe with'
          : 'the pause ends, because the broker accepts it again';
        this.logger.log(`${messageType}: ${why}`);
        return { delayMs: null };
      }
      await this.pauses.enlargeProbe(manager, messageType, probeSize * 2);
      return { delayMs: 0 };
    });
  }
}
