import { Inject, Injectable } from '@nestjs/common';
import { ClockGuard } from '@platform/database';
import { CLOCK, Metrics, RecurringJob } from '@platform/service-defaults';
import { HOUR_MS } from '@platform/time';
import type { Clock } from '@platform/time';
import type { DataSource } from 'typeorm';
import { MESSAGING_OPTIONS, type MessagingOptions } from './buses';
import { ConsumerRegistrar, INBOX_DATA_SOURCE } from './consumer-registrar';

/** Days that a row is retained. A message that is repeated after that is applied again. */
const INBOX_DAYS = 30;

/** Purges old rows of the inbox, so that it does not grow for ever. */
@Injectable()
export class PurgeInboxJob extends RecurringJob {
  private readonly guard: ClockGuard | null;

  constructor(
    private readonly consumers: ConsumerRegistrar,
    @Inject(INBOX_DATA_SOURCE) dataSource: DataSource | null,
    @Inject(MESSAGING_OPTIONS) { inboxPurgeIntervalMs = HOUR_MS }: MessagingOptions,
    @Inject(CLOCK) clock: Clock,
    metrics: Metrics,
  ) {
    super(inboxPurgeIntervalMs, metrics);
    const skippedRuns = metrics.counter(
      'messaging_purges_put_off_total',
      'Purge runs that deleted nothing, because the clocks of the database and the replica differ',
    );
    this.guard = dataSource === null ? null : new ClockGuard(dataSource, clock, skippedRuns);
  }

  /** Does nothing in a service without message handlers, which has no inbox. */
  async run(): Promise<void> {
    if ((await this.guard?.clocksAgree()) === false) return;
    await this.consumers.inbox?.purge(INBOX_DAYS, () => this.stopping);
  }
}
