import { testsThatNeed } from '@platform/testing';
import { findPrometheus } from '#platform/prometheus.ts';
import { RUN_TIMEOUT_MS, expectClean } from './expect-clean';

const FAULTS = ['kill-replica', 'database-kill', 'broker-kill'];
const WATCHED = findPrometheus('prometheus') === null ? [] : ['--prometheus'];
testsThatNeed(
  'dashboards as Prometheus sees them',
  WATCHED.length === 0 ? 'no Prometheus (.ci/install promtool installs it)' : null,
);

describe('a short chaos run', () => {
  it(
    'loses nothing and does nothing twice when a replica, the database and the broker are killed',
    () =>
      expectClean(FAULTS.length, [
        '--rounds',
        String(FAULTS.length),
        '--faults',
        FAULTS.join(','),
        ...WATCHED,
      ]),
    RUN_TIMEOUT_MS,
  );
});
