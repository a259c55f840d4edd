import { SECOND_MS, SYSTEM_CLOCK } from '@platform/time';
import type { Clock } from '@platform/time';
import type { Counter } from 'prom-client';
import type { ServiceLogger } from '../logging/service-logger';
import type { Metrics } from '../metrics/metrics';

/**
 * Why a request was refused, or its connection ended, before or beside its route. A closed set: it labels a
 * metric.
 */
const REFUSAL_REASONS = [
  /** Bytes that are no HTTP/1.1 request. */
  'unreadable',
  'unknown-method',
  'headers-too-large',
  'bad-url',
  'url-too-long',
  /** An `Expect` header other than `100-continue`. */
  'expectation',
  /** Headers or a body arrived below the minimum rate. */
  'too-slow',
  /** A body of more and shorter parts than clients send. */
  'body-in-small-parts',
  /** Bodies that are not complete are at their limit. */
  'bodies-arriving',
  /** Too many pipelined requests on one connection. */
  'too-many-in-flight',
  /** The client did not read its response. */
  'response-not-read',
  /** Responses that wait to be written are at their limit. */
  'responses-waiting',
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** At most one log line in this time, however many requests are refused. */
const LOG_INTERVAL_MS = 10 * SECOND_MS;

/**
 * Counts what is refused outside of routes, and logs it at a bounded rate: no access log line exists for
 * these requests.
 */
export class Refusals {
  private counter: Counter<'reason'> | null = null;
  private logger: ServiceLogger | null = null;
  private readonly unlogged = new Map<RefusalReason, number>();
  private lastLoggedMs = -Infinity;
  private timer: NodeJS.Timeout | undefined;

  constructor(private readonly clock: Clock = SYSTEM_CLOCK) {}

  /** Where counts and lines go. Set once the application exists; nothing is refused before it listens. */
  reportTo(metrics: Metrics, logger: ServiceLogger): void {
    this.counter = metrics.counter(
      'http_requests_refused_total',
      'Requests refused, or connections ended, before or beside their route, by reason.',
      ['reason'],
    );
    // An alert on a series that does not exist yet would miss its first increase.
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
