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
/** No publish starts once this is over; what is left takes its turn anew. */
const PUBLISHING_LIMIT_MS = SECOND_MS;
const LOG_INTERVAL_MS = 60 * SECOND_MS;

/**
 * Publishes stored events, knows which buses are away, and reports what the broker refused. Passes and probes
 * share it.
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
      refused: metrics.counter('task_outbox_refused_total', 'Publish attempts that failed, an outage apart', [
        'message',
        'reason',
      ]),
      parked: metrics.counter('task_outbox_parked_total', 'Events parked after the last attempt'),
    };
    // Prometheus sees no rise in a series that begins with 1: the first refusal would raise no alert.
    for (const message of messageTypesOf(['main', 'scheduling']))
      for (const reason of REFUSAL_REASONS) this.counts.refused.inc({ message, reason }, 0);
  }

  /** Types that go over a bus which is not away. */
  openTypes(): string[] {
    return messageTypesOf(this.pauses.open(this.clock.monotonicMs()));
  }

  /**
   * One turn of publishing.
   * @param isAlone each event has its own channel, because the broker closes the channel of an event that it
   * refuses
   */
  begin({ isAlone }: { isAlone: boolean }): Publishing {
    const endsAtMs = this.clock.monotonicMs() + PUBLISHING_LIMIT_MS;
    const asked = new Map<Bus, Promise<boolean>>();
    return {
      publish: (message) => this.publish(message, isAlone),
      isTimeUp: () => this.clock.monotonicMs() >= endsAtMs,
      isResponding: (bus) => {
        const responding = asked.get(bus) ?? this.publisher.isResponding(bus, RESPONSE_TIMEOUT_MS);
        asked.set(bus, responding);
        return responding;
      },
    };
  }

  /** Leaves the buses alone that could not take a message; gives for how long. */
  pausesAfter({ outages }: BatchOutcome): Map<Bus, number> {
    const nowMs = this.clock.monotonicMs();
    return new Map([...outages].map((bus) => [bus, this.pauses.reportOutage(bus, nowMs)]));
  }

  /** Counts what became of events, and logs each kind of refusal once a minute at most. */
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
