import { ClockGuard } from '@platform/database';
import type { Metrics } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import type { DataSource } from 'typeorm';

/**
 * Creates the guard that suspends this service's purges while the clocks of the database and the replica
 * differ.
 */
export function purgeClockGuard(dataSource: DataSource, clock: Clock, metrics: Metrics): ClockGuard {
  const postponed = metrics.counter(
    'auth_purges_put_off_total',
    'Purge runs that were stopped because the clocks of the database and the replica differ',
  );
  return new ClockGuard(dataSource, clock, postponed);
}
