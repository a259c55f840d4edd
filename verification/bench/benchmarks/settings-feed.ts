import { makeAccessToken } from '#platform/callers.ts';
import { residentBytes } from '#platform/proc.ts';
import type { Program } from '#platform/programs.ts';
import { queryAt } from '#platform/postgresql.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { type Benchmark, closing, firstAgainstSecond } from '../contest.ts';
import { HttpLoad } from '../load.ts';
import { measuredBy, startMeasuredProgram } from '../measured-program.ts';
import { NO_ETCD, startEtcd } from '../peers/etcd.ts';

/** Reads from the memory of a watching client. */
export const settingsClientRead: Benchmark = {
  id: 'settings-client-read',
  title: 'Reading a setting from the memory of a watching client',
  async prepare(servers) {
    const program = await startMeasuredProgram(servers, 'settings-watch');
    const contest = firstAgainstSecond('plain Map', { atLeast: 0.3 }, [
      measuredBy(program, 'peek', "looks up the entry by the caller's spelling of subsystem and name"),
      measuredBy(program, 'plain Map', '`Map.get` by name'),
      measuredBy(program, 'getValue', 'the same through a promise'),
    ]);
    return {
      unit: 'reads/s',
      maxRounds: 3,
      ...contest,
      comparisons: [
        ...contest.comparisons,
        { title: '5 million/s', of: 'peek', against: 5_000_000, goal: { atLeast: 1 } },
      ],
      conditions: ['1,000 settings in turn, one thread'],
      close: closing(program),
    };
  },
};

/** Latency from the response of a write to the callback of a watcher. */
export const settingsWatchLatency: Benchmark = {
  id: 'settings-watch-latency',
  title: 'From the response of a PUT to the callback of a watching client',
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth', 'settings']);
    const etcd = await startEtcd(servers);
    const program = await startMeasuredProgram(servers, 'settings-watch', {
      SETTINGS_URL: platform.url('settings'),
      SETTINGS_TOKEN: makeAccessToken(platform.settings),
      ...(etcd && { ETCD_URL: etcd.url }),
    });
    return {
      unit: 'ms',
      maxRounds: 3,
      contestants: [
        measuredBy(program, 'p99', 'writes, waits for the callback, pauses for 0 to 200 ms; 99th percentile'),
        measuredBy(program, 'p50', 'the same; median'),
        ...(etcd === null
          ? []
          : [
              measuredBy(
                program,
                'etcd p99',
                'put and watch over the JSON gateway, the same pauses; 99th percentile',
              ),
              measuredBy(program, 'etcd p50', 'the same; median'),
            ]),
      ],
      comparisons: [{ title: '250 ms', of: 'p99', against: 250, goal: { atMost: 1 } }],
      conditions: [
        'one process; the service polls its database every 100 ms while a client waits',
        etcd === null
          ? NO_ETCD
          : 'etcd keeps one stream open per watcher and sends a change before it responds to the put',
      ],
      close: closing(program, platform, ...(etcd === null ? [] : [etcd])),
    };
  },
};

const WATCHERS = 1_000;

/** The cost of a thousand waiting watchers. */
export const settingsWatchers: Benchmark = {
  id: 'settings-watchers-1000',
  title: `Cost of ${WATCHERS} waiting watchers for one process`,
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth', 'settings']);
    const measureBoth = () => measureWatchers(platform);
    let both: ReturnType<typeof measureBoth> | undefined;
    return {
      unit: 'MB or statements/s',
      maxRounds: 1,
      contestants: (['MB', 'statements/s'] as const).map((figure) => ({
        name: figure,
        does:
          figure === 'MB'
            ? 'growth of resident memory'
            : 'transactions that PostgreSQL counted for the database',
        measure: async () => (await (both ??= measureBoth()))[figure],
      })),
      comparisons: [
        { title: '100 MB', of: 'MB', against: 100, goal: { atMost: 1 } },
        { title: '20 statements/s', of: 'statements/s', against: 20, goal: { atMost: 1 } },
      ],
      conditions: [
        'one connection each; transactions are counted for 10 s, including all other statements of the service',
      ],
      close: closing(platform),
    };
  },
};

async function measureWatchers(platform: TestPlatform): Promise<Record<'MB' | 'statements/s', number>> {
  const service = platform.programs.find(({ name }) => name.startsWith('settings'))!;
  const headers = { authorization: `Bearer ${makeAccessToken(platform.settings)}` };
  const path = '/platform/v1/changes?waitSeconds=20';
  const { owner } = platform.settings.databases.settings;
  const load = new HttpLoad(platform.url('settings'), WATCHERS);
  await load.send({ method: 'GET', path: '/platform/v1/changes', headers, expect: 200 });
  const before = residentMegabytes(service);
  const waiting = load.run(1, () => ({ method: 'GET', path, headers, expect: 200 }));
  await new Promise((resolve) => setTimeout(resolve, 3_000));
  const counted = await transactions(owner);
  await new Promise((resolve) => setTimeout(resolve, 10_000));
  const statements = (await transactions(owner)) - counted;
  const memory = residentMegabytes(service) - before;
  await waiting;
  await load.close();
  return { MB: memory, 'statements/s': statements / 10 };
}

function residentMegabytes({ pid }: Program): number {
  return residentBytes(pid)! / 1e6;
}

async function transactions(databaseUrl: string): Promise<number> {
  const [row] = await queryAt<{ count: string }>(
    databaseUrl,
    'SELECT xact_commit + xact_rollback AS count FROM pg_stat_database WHERE datname = current_database()',
  );
  return Number(row!.count);
}
