import type { Registry } from 'prom-client';
import { DURATION_BUCKETS_SECONDS } from './metrics';

const NAME = 'http_request_duration_seconds';
const HELP =
  'Time from the first byte of a request to the last byte of its answer, by route template and status.';

interface Sample {
  labels: Record<string, string | number>;
  value: number;
  metricName: string;
}

/** Durations of one route and status. */
class Series {
  readonly counts = new Float64Array(DURATION_BUCKETS_SECONDS.length + 1);
  sumSeconds = 0;

  observe(seconds: number): void {
    let bucket = 0;
    while (bucket < DURATION_BUCKETS_SECONDS.length && seconds > (DURATION_BUCKETS_SECONDS[bucket] ?? 0))
      bucket += 1;
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.sumSeconds += seconds;
  }

  samples(labels: Record<string, string | number>): Sample[] {
    let total = 0;
    const buckets = [...this.counts].map((count, index) => {
      total += count;
      const le = DURATION_BUCKETS_SECONDS[index] ?? '+Inf';
      return { labels: { le, ...labels }, value: total, metricName: `${NAME}_bucket` };
    });
    return [
      ...buckets,
      { labels, value: this.sumSeconds, metricName: `${NAME}_sum` },
      { labels, value: total, metricName: `${NAME}_count` },
    ];
  }
}

/** Durations of one route, whatever the status. */
export class RouteDurations {
  readonly series = new Map<number, Series>();

  constructor(
    readonly method: string,
    readonly route: string,
  ) {}

  observe(status: number, durationMs: number): void {
    let series = this.series.get(status);
    if (series === undefined) this.series.set(status, (series = new Series()));
    series.observe(durationMs / 1_000);
  }
}

/**
 * The histogram of request durations. prom-client's own hashes its labels on every observation; here a route keeps its
 * series, so that a request costs one map look-up.
 */
export class HttpDurations {
  readonly name = NAME;
  readonly help = HELP;
  readonly type = 'histogram';
  readonly aggregator = 'sum';
  private readonly routes: RouteDurations[] = [];

  register(registry: Registry): void {
    // The registry asks a metric for no more than `name` and `get`; its type describes prom-client's own classes.
    registry.registerMetric(this as unknown as Parameters<Registry['registerMetric']>[0]);
  }

  route(method: string, route: string): RouteDurations {
    const durations = new RouteDurations(method, route);
    this.routes.push(durations);
    return durations;
  }

  /** Called by the registry on every scrape. */
  get(): Promise<object> {
    const values = this.routes.flatMap(({ method, route, series }) =>
      [...series].flatMap(([status, each]) => each.samples({ method, route, status })),
    );
    return Promise.resolve({ name: NAME, help: HELP, type: this.type, aggregator: this.aggregator, values });
  }

  reset(): void {
    for (const { series } of this.routes) series.clear();
  }
}
