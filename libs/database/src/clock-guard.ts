import { Logger } from '@nestjs/common';
import type { Clock } from '@platform/time';
import type { DataSource } from 'typeorm';

/**
 * Maximum difference between the clocks of the database and of this replica. Beyond it, neither clock is
 * trusted for deleting old rows.
 */
const CLOCK_TOLERANCE_MS = 30_000;

/** Prevents jobs from deleting rows that are old only by a wrong clock. */
export class ClockGuard {
  private readonly log = new Logger('Purge');

  /** @param skipped counts the runs that delete nothing because the clocks differ */
  constructor(
    private readonly dataSource: Pick<DataSource, 'query'>,
    private readonly clock: Pick<Clock, 'now'>,
    private readonly skipped: { inc(): void },
  ) {}

  /** Whether the clocks agree. If not, either may be wrong, so the run is counted and logged as skipped. */
  async clocksAgree(): Promise<boolean> {
    const before = this.clock.now().getTime();
    const [row] = await this.dataSource.query<{ present: Date }[]>('SELECT clock_timestamp() AS present');
    const after = this.clock.now().getTime();
    const present = row!.present.getTime();
    const differenceMs = Math.max(before - present, present - after, 0);
    if (differenceMs <= CLOCK_TOLERANCE_MS) return true;
    this.skipped.inc();
    this.log.warn('nothing is purged: the clocks of the database and of this replica differ', {
      differenceMs,
    });
    return false;
  }
}
