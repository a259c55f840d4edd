import { Injectable } from '@nestjs/common';
import { Metrics } from '@platform/service-defaults';
import { ERROR_REASONS } from '../headers/delivery-headers';

const SENT = ['bus', 'message'] as const;
const RECEIVED = ['queue', 'message'] as const;

/** Name, help text and labels of each event's counter. */
const COUNTERS = {
  published: ['messaging_published_total', 'Messages confirmed by the broker', SENT],
  returned: ['messaging_returned_total', 'Messages that were routed to no queue', SENT],
  consumed: ['messaging_consumed_total', 'Messages processed, repetitions included', RECEIVED],
  retried: ['messaging_retried_total', 'Failed attempts that are retried', RECEIVED],
  'put-off': [
    'messaging_put_off_total',
    'Deliveries postponed because a message for the same rows is stalled',
    RECEIVED,
  ],
  duplicate: ['messaging_duplicates_total', 'Deliveries of messages that were applied before', RECEIVED],
  expired: [
    'messaging_expired_total',
    'Requests dropped because they arrived after their expiration time',
    RECEIVED,
  ],
  errored: [
    'messaging_errored_total',
    'Messages moved to an error or skipped queue',
    ['queue', 'reason'] as const,
  ],
} as const;

type MessageEvent = keyof typeof COUNTERS;
type Labels<E extends MessageEvent> = Readonly<Record<(typeof COUNTERS)[E][2][number], string>>;

/** Counts one event of a message. */
export type CountMessage = <E extends MessageEvent>(event: E, labels: Labels<E>) => void;

/** Prometheus counters of this process's messages. */
@Injectable()
export class MessageMetrics {
  constructor(private readonly metrics: Metrics) {
    for (const [name, help, labelNames] of Object.values(COUNTERS))
      metrics.counter<string>(name, help, labelNames);
  }

  readonly count: CountMessage = (event, labels) => this.add(event, labels, 1);

  /** Exports the number of waiting deliveries that `read` returns. */
  watchWaiting(read: () => number): void {
    const help = 'Deliveries that wait for one of the database connections that all handlers share';
    this.metrics.sampledGauge('messaging_deliveries_waiting', help, [], () => [
      { labels: {}, value: read() },
    ]);
  }

  /**
   * Starts a queue's counters at 0, because Prometheus misses the first increment of a series that does not
   * exist before it.
   */
  startQueue(queue: string, messages: readonly string[]): void {
    for (const reason of ERROR_REASONS) this.add('errored', { queue, reason }, 0);
    for (const message of messages) {
      for (const event of ['consumed', 'retried', 'put-off', 'duplicate', 'expired'] as const)
        this.add(event, { queue, message }, 0);
    }
  }

  private add<E extends MessageEvent>(event: E, labels: Labels<E>, value: number): void {
    const [name, help, labelNames] = COUNTERS[event];
    this.metrics.counter(name, help, labelNames).inc({ ...labels }, value);
  }
}
