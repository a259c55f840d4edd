import { SECOND_MS, SYSTEM_CLOCK } from '@platform/time';
import type { Clock } from '@platform/time';
import type { Counter } from 'prom-client';
import type { ServiceLogger } from '../logging/service-logger';
import type { Metrics } from '../metrics/metrics';

/**
 * Reasons why a request was refused, or its connection closed, outside the routes. A closed set, because it
 * labels a metric.
 */
const REFUSAL_REASONS = [
  /** Bytes that are not an HTTP/1.1 request. */
  'unreadable',
  'unknown-method',
  'headers-too-large',
  'bad-url',
  'url-too-long',
  /** An `Expect` header other than `100-continue`. */
  'expectation',
  /** Headers or a body that arrived too slowly. */
  'too-slow',
  /** A body in more and smaller parts than ordinary clients send. */
  'body-in-small-parts',
  /** The memory limit of incomplete bodies was reached. */
  'bodies-arriving',
  /** Too many pipelined requests on one connection. */
  'too-many-in-flight',
  /** The client did not read its response. */
  'response-not-read',
  /** The limit of bytes that wait to be written was reached. */
  'responses-waiting',
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** Minimum time between log lines, however many requests are refused. */
const LOG_INTERVAL_MS = 10 * SECOND_MS;

/**
 * Counts refusals outside the routes and logs them at a limited rate, because these requests have no access
 * log line.
 */
export class Refusals {
  private counter: Counter<'reason'> | null = null;
  private logger: ServiceLogger | null = null;
  private readonly unlogged = new Map<RefusalReason, number>();
  private lastLoggedMs = -Infinity;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly clock: Clock = SYSTEM_CLOCK) {}

  /**
   * Sets the metrics and the logger. Called once the application exists; nothing is refused before it
   * listens.
   */
  reportTo(metrics: Metrics, logger: ServiceLogger): void {
    this.counter = metrics.counter(
      'http_requests_refused_total',
      'Requests refused, or connections closed, outside the routes, by reason.',
      ['reason'],
    );
    // Every series starts at 0, because an alert would miss the first increase of a series that does not
    // exist yet.
    for (const reason of REFUSAL_REASONS) this.counter.inc({ reason }, 0);
    this.logger = logger;
  }

  count(reason: RefusalReason): void {
    this.counter?.inc({ reason });
    this.unlogged.set(reason, (this.unlogged.get(reason) ?? 0) + 1);
    if (this.timer !== undefined) return;
    const waitMs = this.lastLoggedMs + LOG_INTERVAL_MS - this.clock.monotonicMs();
    if (waitMs <= 0) this.log();
    else this.timer = setTimeout(() => this.log(), waitMs).unref();
  }

  private log(): void {
    clearTimeout(this.timer);
    this.timer = undefined;
    this.lastLoggedMs = this.clock.monotonicMs();
    const counts = Object.fromEntries(this.unlogged);
    this.unlogged.clear();
    this.logger?.warn('requests refused before their route', { refused: counts }, 'Connections');
  }
}
