import { Injectable } from '@nestjs/common';
import { Metrics } from '@platform/service-defaults';
import { ERROR_REASONS } from './consuming/delivery-headers';

interface Sent {
  readonly bus: string;
  readonly message: string;
}

interface Received {
  readonly queue: string;
  readonly message: string;
}

/** What is counted, and the labels of each count. */
interface MessageCounts {
  published: Sent;
  returned: Sent;
  consumed: Received;
  retried: Received;
  duplicate: Received;
  errored: { readonly queue: string; readonly reason: string };
}

/** Counts one message. */
export type CountMessage = <E extends keyof MessageCounts>(event: E, labels: MessageCounts[E]) => void;

const SENT_LABELS = ['bus', 'message'];
const RECEIVED_LABELS = ['queue', 'message'];

/** The messages of this process as Prometheus counters. */
@Injectable()
export class MessageMetrics {
  private readonly totals;

  constructor(metrics: Metrics) {
    this.totals = {
      published: metrics.counter(
        'messaging_published_total',
        'Messages confirmed by the broker',
        SENT_LABELS,
      ),
      returned: metrics.counter('messaging_returned_total', 'Messages that no queue wanted', SENT_LABELS),
      consumed: metrics.counter(
        'messaging_consumed_total',
        'Messages processed, repetitions included',
        RECEIVED_LABELS,
      ),
      retried: metrics.counter(
        'messaging_retried_total',
        'Failed attempts that are repeated',
        RECEIVED_LABELS,
      ),
      duplicate: metrics.counter(
        'messaging_duplicates_total',
        'Deliveries of messages that the inbox says are applied already',
        RECEIVED_LABELS,
      ),
      errored: metrics.counter('messaging_errored_total', 'Messages put into an error or skipped queue', [
        'queue',
        'reason',
      ]),
    };
  }

  readonly count: CountMessage = (event, labels) => this.totals[event].inc({ ...labels });

  /** Starts a queue's counters at 0: Prometheus does not see the first step of a series that begins with it. */
  startQueue(queue: string, messages: readonly string[]): void {
    for (const reason of ERROR_REASONS) this.totals.errored.inc({ queue, reason }, 0);
    for (const message of messages) {
      for (const event of ['consumed', 'retried', 'duplicate'] as const)
        this.totals[event].inc({ queue, message }, 0);
    }
  }
}
