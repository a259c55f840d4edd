import { Logger } from '@nestjs/common';
import type { Clock } from '@platform/time';
import type { DataSource } from 'typeorm';

/**
 * Further apart, the database's clock and the replica's give no date by which anything may be removed for
 * good.
 */
const CLOCK_TOLERANCE_MS = 30_000;

/** Keeps jobs from removing what is old by a clock that is wrong. */
export class ClockGuard {
  private readonly log = new Logger('Purge');

  /** @param putOff counts the runs that remove nothing */
  constructor(
    private readonly dataSource: Pick<DataSource, 'query'>,
    private readonly clock: Pick<Clock, 'now'>,
    private readonly putOff: { inc(): void },
  ) {}

  /** False when the clocks differ; which of the two is wrong, nobody knows. */
  async clocksAgree(): Promise<boolean> {
    const before = this.clock.now().getTime();
    const [row] = await this.dataSource.query<{ present: Date }[]>('SELECT clock_timestamp() AS present');
    const after = this.clock.now().getTime();
    const present = row!.present.getTime();
    const differenceMs = Math.max(before - present, present - after, 0);
    if (differenceMs <= CLOCK_TOLERANCE_MS) return true;
    this.putOff.inc();
    this.log.warn('nothing is purged: the clocks of the database and of this replica differ', {
      differenceMs,
    });
    return false;
  }
}
