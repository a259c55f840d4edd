import { Injectable } from '@nestjs/common';
import { Metrics } from '@platform/service-defaults';
import { PARK_REASONS } from '../consuming/delivery-headers';
import type { MessagingCounters } from '../consuming/endpoint';

/** The messaging counters as Prometheus metrics. */
@Injectable()
export class MessagingMetrics implements MessagingCounters {
  private readonly publishedTotal;
  private readonly returnedTotal;
  private readonly consumedTotal;
  private readonly retriedTotal;
  private readonly erroredTotal;
  private readonly duplicatesTotal;

  constructor(metrics: Metrics) {
    const out = ['bus', 'message'] as const;
    const inbound = ['queue', 'message'] as const;
    this.publishedTotal = metrics.counter(
      'messaging_published_total',
      'Messages confirmed by the broker',
      out,
    );
    this.returnedTotal = metrics.counter('messaging_returned_total', 'Messages that no queue wanted', out);
    this.consumedTotal = metrics.counter(
      'messaging_consumed_total',
      'Messages processed, repetitions included',
      inbound,
    );
    this.retriedTotal = metrics.counter(
      'messaging_retried_total',
      'Failed attempts that are repeated',
      inbound,
    );
    this.erroredTotal = metrics.counter(
      'messaging_errored_total',
      'Messages put into an error or skipped queue',
      ['queue', 'reason'],
    );
    this.duplicatesTotal = metrics.counter(
      'messaging_duplicates_total',
      'Deliveries of messages that the inbox says are applied already',
      inbound,
    );
  }

  /** Prometheus does not see a series' first step: what has never happened at a queue is there as 0. */
  startQueue(queue: string, messages: readonly string[]): void {
    for (const reason of PARK_REASONS) this.erroredTotal.inc({ queue, reason }, 0);
    for (const message of messages) {
      for (const total of [this.consumedTotal, this.retriedTotal, this.duplicatesTotal])
        total.inc({ queue, message }, 0);
    }
  }

  duplicate(queue: string, message: string): void {
    this.duplicatesTotal.inc({ queue, message });
  }

  published(bus: string, message: string): void {
    this.publishedTotal.inc({ bus, message });
  }

  returned(bus: string, message: string): void {
    this.returnedTotal.inc({ bus, message });
  }

  consumed(queue: string, message: string): void {
    this.consumedTotal.inc({ queue, message });
  }

  retried(queue: string, message: string): void {
    this.retriedTotal.inc({ queue, message });
  }

  errored(queue: string, reason: string): void {
    this.erroredTotal.inc({ queue, reason });
  }
}
