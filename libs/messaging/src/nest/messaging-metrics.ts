import { Injectable } from '@nestjs/common';
import { Metrics } from '@platform/service-defaults';
import type { MessagingCounters } from '../consuming/endpoint';

/** The messaging counters as Prometheus metrics. */
@Injectable()
export class MessagingMetrics implements MessagingCounters {
  private readonly publishedTotal;
  private readonly returnedTotal;
  private readonly consumedTotal;
  private readonly retriedTotal;
  private readonly erroredTotal;

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
