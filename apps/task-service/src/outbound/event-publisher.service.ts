import { Inject, Injectable, Logger } from '@nestjs/common';
import type { Bus } from '@platform/contracts';
import { MessagePublisher } from '@platform/messaging';
import { CLOCK, Metrics } from '@platform/service-defaults';
import { SECOND_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import { messageTypesOf, outboundContract } from './outbound-event';
import { REFUSAL_REASONS } from './publish-failure';
import type { StoredMessage } from './outbox-message.entity';
import { BusPauses } from './publish-batch';
import type { BatchOutcome, Publishing, RefusedMessage } from './publish-batch';

const CONFIRM_TIMEOUT_MS = 2 * SECOND_MS;
const RESPONSE_TIMEOUT_MS = SECOND_MS;
/** Time after which a turn starts no further publish. The remaining events wait for the next turn. */
const TURN_LIMIT_MS = SECOND_MS;
const LOG_INTERVAL_MS = 60 * SECOND_MS;

/**
 * Publishes stored events, tracks which buses are down, and reports what the broker refused. Shared by relay
 * passes and probes.
 */
@Injectable()
export class EventPublisher {
  private readonly logger = new Logger(EventPublisher.name);
  private readonly pauses = new BusPauses();
  private readonly loggedAtMs = new Map<string, number>();
  private readonly counts;

  constructor(
    private readonly publisher: MessagePublisher,
    @Inject(CLOCK) private readonly clock: Clock,
    metrics: Metrics,
  ) {
    this.counts = {
      sent: metrics.counter('task_outbox_sent_total', 'Events confirmed by the broker'),
      refused: metrics.counter(
        'task_outbox_refused_total',
        'Publish attempts that failed, other than in an outage',
        ['message', 'reason'],
      ),
      parked: metrics.counter('task_outbox_parked_total', 'Events parked after the last attempt'),
    };
    // Starts each series at 0: Prometheus sees no increase in a series that begins at 1, so the first refusal
    // would raise no alert.
    for (const message of messageTypesOf(['main', 'scheduling']))
      for (const reason of REFUSAL_REASONS) this.counts.refused.inc({ message, reason }, 0);
  }

  /** Returns the message types whose bus is not down. */
  openTypes(): string[] {
    return messageTypesOf(this.pauses.open(this.clock.monotonicMs()));
  }

  /**
   * Begins a turn of publishing.
   * @param isAlone gives each event its own channel, because the broker closes the channel of an event that
   * it refuses
   */
  begin({ isAlone }: { isAlone: boolean }): Publishing {
    const endsAtMs = this.clock.monotonicMs() + TURN_LIMIT_MS;
    const checks = new Map<Bus, Promise<boolean>>();
    return {
      publish: (message) => this.publish(message, isAlone),
      isTimeUp: () => this.clock.monotonicMs() >= endsAtMs,
      isResponding: (bus) => {
        const responding = checks.get(bus) ?? this.publisher.isResponding(bus, RESPONSE_TIMEOUT_MS);
        checks.set(bus, responding);
        return responding;
      },
    };
  }

  /** Pauses the buses that could not accept a message. Returns the length of each pause in milliseconds. */
  pausesAfter({ outages }: BatchOutcome): Map<Bus, number> {
    const nowMs = this.clock.monotonicMs();
    return new Map([...outages].map((bus) => [bus, this.pauses.reportOutage(bus, nowMs)]));
  }

  /** Counts sent, refused and parked events. Logs each kind of refusal at most once a minute. */
  report({ sent, refused }: Pick<BatchOutcome, 'sent' | 'refused'>): void {
    this.counts.sent.inc(sent.length);
    for (const event of refused) {
      const { messageType: message, reason } = event;
      this.counts.refused.inc({ message, reason });
      this.log(event);
    }
    const parked = refused.filter(({ delayMs }) => delayMs === null);
    this.counts.parked.inc(parked.length);
    if (parked.length > 0) this.logger.error(`${String(parked.length)} events parked`);
  }

  private async publish(message: StoredMessage, isAlone: boolean): Promise<void> {
    const { messageType, messageId, conversationId, sentAt, traceHeaders: headers } = message;
    const envelope = this.publisher.createEnvelope<unknown>(outboundContract(messageType), message.message, {
      messageId,
      conversationId: conversationId ?? undefined,
      sentAt,
      headers,
    });
    await this.publisher.publishEnvelope(envelope, { timeoutMs: CONFIRM_TIMEOUT_MS, isAlone });
    this.pauses.reportSuccess(envelope.bus);
  }

  private log({ messageType, reason, error }: RefusedMessage): void {
    const key = `${messageType} ${reason}`;
    const nowMs = this.clock.monotonicMs();
    if (nowMs - (this.loggedAtMs.get(key) ?? -Infinity) < LOG_INTERVAL_MS) return;
    this.loggedAtMs.set(key, nowMs);
    this.logger.warn(`${messageType} is refused (${reason}): ${error}`);
  }
}
