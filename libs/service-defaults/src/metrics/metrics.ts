import { Injectable } from '@nestjs/common';
import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from 'prom-client';

/** The Prometheus metrics of one application. Asking twice for a name gives the same metric. */
@Injectable()
export class Metrics {
  readonly registry = new Registry();

  /** Adds memory, processor, garbage collection and event loop figures of the process; once per process. */
  collectProcessMetrics(): void {
    collectDefaultMetrics({ register: this.registry });
  }

  counter<L extends string = string>(name: string, help: string, labelNames: readonly L[] = []): Counter<L> {
    const known = this.registry.getSingleMetric(name);
    return (
      (known as Counter<L> | undefined) ?? new Counter({ name, help, labelNames, registers: [this.registry] })
    );
  }

  gauge<L extends string = string>(name: string, help: string, labelNames: readonly L[] = []): Gauge<L> {
    const known = this.registry.getSingleMetric(name);
    return (
      (known as Gauge<L> | undefined) ?? new Gauge({ name, help, labelNames, registers: [this.registry] })
    );
  }

  /** @param buckets upper bounds, ascending; for durations in seconds */
  histogram<L extends string = string>(
    name: string,
    help: string,
    labelNames: readonly L[] = [],
    buckets: readonly number[] = DURATION_BUCKETS_SECONDS,
  ): Histogram<L> {
    const known = this.registry.getSingleMetric(name);
    if (known !== undefined) return known as Histogram<L>;
    return new Histogram({ name, help, labelNames, buckets: [...buckets], registers: [this.registry] });
  }
}

/** Upper bounds for durations of requests and queries, in seconds. */
export const DURATION_BUCKETS_SECONDS: readonly number[] = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];
