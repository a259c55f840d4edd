import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { runTool } from '@platform/testing';
import { findPrometheus } from '#observability/promtool.ts';
import { findOnPath } from '#platform/processes.ts';
import { FAKETIME } from '../engines/clocks.ts';

/** Some 45 s as a rule, an upgrade four times that; more beside other tests. */
const RUN_TIMEOUT_MS = 480_000;
const CLUSTER_FAULTS = ['postmaster-kill', 'broker-node-kill', 'etcd-leader-kill', 'machine-clock-step'];
const FAULTS = ['kill-replica', 'database-kill', 'broker-kill'];
/** The last release, as the change log names its commit. */
const CHANGES = readFileSync(join(__dirname, '../../../CHANGELOG.md'), 'utf8');
const RELEASE = /The release is commit `(\w+)`/.exec(CHANGES)?.[1] ?? '';

const HAS_RELEASE =
  spawnSync('git', ['cat-file', '-e', `${RELEASE}^{commit}`], { cwd: __dirname }).status === 0;
if (!HAS_RELEASE)
  process.stderr.write(
    `\nSKIPPED: an upgrade from ${RELEASE} (a checkout with its history has that commit)\n\n`,
  );

const WATCHED = findPrometheus('prometheus') === null ? [] : ['--prometheus'];
if (WATCHED.length === 0)
  process.stderr.write('\nSKIPPED: dashboards as Prometheus sees them (.ci/install-promtool brings it)\n\n');

/** `.ci/install-cluster` brings it, and only root may. */
const HAS_CLUSTER =
  process.getuid?.() === 0 &&
  findOnPath('debootstrap') !== null &&
  findOnPath('ip') !== null &&
  existsSync(FAKETIME);
if (!HAS_CLUSTER)
  process.stderr.write('\nSKIPPED: lost leaders of a cluster (root and .ci/install-cluster)\n\n');

/** An upgrade may fetch packages: as whoever runs the tests has set it up. */
const NPM_ENVIRONMENT = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => /^npm_config_|_proxy$|^NODE_EXTRA_CA_CERTS$/i.test(name)),
) as Record<string, string>;

async function expectClean(rounds: number, args: readonly string[]): Promise<void> {
  const written = await runTool({
    entry: join(__dirname, '../main.ts'),
    args: ['--seed', '1', ...args],
    env: NPM_ENVIRONMENT,
    timeoutMs: RUN_TIMEOUT_MS - 30_000,
  });
  expect(written.match(/^ *[\d.]+ s {2}✔ +\d\/\d /gm)).toHaveLength(rounds);
  expect(written).toContain('nothing lost, nothing twice');
}

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

describe('an upgrade from the last release, and back', () => {
  (HAS_RELEASE ? it : it.skip)(
    'fails no request and loses nothing',
    () => expectClean(6, ['--upgrade-from', RELEASE]),
    RUN_TIMEOUT_MS,
  );
});

describe('three machines with RabbitMQ and PostgreSQL', () => {
  (HAS_CLUSTER ? it : it.skip)(
    'lose no acknowledged write when each leader is killed and a clock jumps',
    () => {
      const rounds = CLUSTER_FAULTS.length;
      const flags = ['--cluster', '--rounds', String(rounds), '--faults', CLUSTER_FAULTS.join(',')];
      return expectClean(rounds, flags);
    },
    RUN_TIMEOUT_MS,
  );
});
