import { ClockGuard } from '@platform/database';
import type { Metrics } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import type { DataSource } from 'typeorm';

/** Creates the guard that suspends this service's purges while the clocks of database and replica differ. */
export function purgeClockGuard(dataSource: DataSource, clock: Clock, metrics: Metrics): ClockGuard {
  const putOff = metrics.counter(
    'auth_purges_put_off_total',
    'Runs of the purge that removed no more, because the clocks of the database and the replica differ',
  );
  return new ClockGuard(dataSource, clock, putOff);
}
