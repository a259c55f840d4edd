import { makeAccessToken } from '#platform/callers.ts';
import { median } from '#platform/statistics.ts';
import type { PrivateServers, TestPlatform } from '#platform/test-platform.ts';
import { type Benchmark, closing, type Contest, firstAgainstSecond } from '../contest.ts';
import { base64, NO_ETCD, startEtcd } from '../peers/etcd.ts';
import { HttpLoad, runSql, SqlLoad, type SqlWork } from '../load.ts';

const CONNECTIONS = 32;
const SETTING = '/platform/v1/subsystems/Billing/settings/Currency';
const VALUE = { code: 'EUR', digits: 2, note: 'x'.repeat(200) };

const VALUE_TEXT = JSON.stringify(VALUE);
const BODY = JSON.stringify({ settingValue: VALUE });

/** Reads of one setting's value. */
export const settingsRead: Benchmark = {
  id: 'settings-read',
  title: 'GET …/value of one setting',
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth', 'settings']);
    const peer = await servers.startPeer('verification/bench/peers/bare-settings-read.ts', {
      DATABASE_URL: platform.settings.databases.settings.app,
    });
    const etcd = await etcdRead(servers);
    const ours = new HttpLoad(platform.url('settings'), CONNECTIONS);
    const bare = new HttpLoad(peer.url, CONNECTIONS);
    const headers = headersOf(platform);
    await ours.send({ method: 'PUT', path: SETTING, headers, body: BODY, expect: 200 });
    const read = {
      method: 'GET',
      path: `${SETTING}/value`,
      headers: { authorization: headers.authorization },
      expect: 200,
    } as const;
    const contest = firstAgainstSecond('bare server', { atLeast: 1.5 }, [
      {
        name: 'settings-service',
        does: 'routes the request, verifies the HS256 token, checks revocation and persona, reads the row from PostgreSQL, responds',
        measure: ours.rate(read),
      },
      {
        name: 'bare server',
        does: '`node:http`; reads the same row with a named query of `pg`; verifies nothing',
        measure: bare.rate(read),
      },
      ...etcd.contestants,
    ]);
    return {
      unit: 'requests/s',
      ...contest,
      comparisons: [...contest.comparisons, ...etcd.comparisons],
      conditions: [
        `one process each, ${CONNECTIONS} connections, a pool of 20 database connections each, a value of 240 bytes`,
        ...etcd.conditions,
      ],
      close: closing(ours, bare, etcd, platform, peer),
    };
  },
};

/** Reads of the same value through etcd's JSON gateway, if etcd is installed. */
async function etcdRead(
  servers: PrivateServers,
): Promise<Pick<Contest, 'contestants' | 'comparisons' | 'conditions' | 'close'>> {
  const etcd = await startEtcd(servers);
  if (etcd === null) return { contestants: [], comparisons: [], conditions: [NO_ETCD], close: closing() };
  const load = new HttpLoad(etcd.url, CONNECTIONS);
  const post = { method: 'POST', headers: { 'content-type': 'application/json' }, expect: 200 } as const;
  const [key, value] = [base64(SETTING), base64(VALUE_TEXT)];
  await load.send({ ...post, path: '/v3/kv/put', body: JSON.stringify({ key, value }) });
  const name = 'etcd';
  const does =
    'POST /v3/kv/range of one key at its JSON gateway, in Base64; reads from memory on one node, linearizable; verifies nothing';
  const measure = load.rate({ ...post, path: '/v3/kv/range', body: JSON.stringify({ key }) });
  const title = `value read by HTTP : etcd JSON gateway, ${CONNECTIONS} connections`;
  return {
    contestants: [{ name, does, measure }],
    comparisons: [{ title, of: 'settings-service', against: name, goal: { atLeast: 3 } }],
    conditions: [],
    close: closing(load, etcd),
  };
}

function headersOf({ settings }: TestPlatform): { authorization: string; 'content-type': string } {
  return { authorization: `Bearer ${makeAccessToken(settings)}`, 'content-type': 'application/json' };
}

const KEYS_PER_CONNECTION = 50;
const WRITE = `
  WITH written AS (
    INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
    VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (subsystem_key, setting_key)
      DO UPDATE SET value_text = excluded.value_text, revision = excluded.revision
    RETURNING subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision
  )
  INSERT INTO settings.setting_history
    (subsystem_key, setting_key, subsystem_name, setting_name, value_text, revision, operation, user_id, person_name, persona, request_id)
  SELECT written.*, 'write', 9001, 'Ivy Internal', 1, 'bench' FROM written
  RETURNING *`;

const shortestWrite: SqlWork = (client, worker, count) => {
  const name = `Key-${worker}-${count % KEYS_PER_CONNECTION}`;
  const values = ['bare', name.toLowerCase(), 'Bare', name, VALUE_TEXT];
  return client.query({ name: 'write', text: WRITE, values });
};

const bareWrite: SqlWork = async (client, worker, count) => {
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await shortestWrite(client, worker, count);
  await client.query('COMMIT');
};

/** Writes of settings. No two writers share a key. */
export const settingsWrite: Benchmark = {
  id: 'settings-write',
  title: 'PUT of distinct settings, with history',
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth', 'settings']);
    const ours = new HttpLoad(platform.url('settings'), CONNECTIONS);
    const bare = new SqlLoad(platform.settings.databases.settings.app, CONNECTIONS);
    const headers = headersOf(platform);
    const put = (connection: number, count: number) => {
      const name = `Key-${connection}-${count % KEYS_PER_CONNECTION}`;
      const path = `/platform/v1/subsystems/Ours/settings/${name}`;
      return { method: 'PUT', path, headers, body: BODY, expect: 200 } as const;
    };
    return {
      unit: 'writes/s',
      ...firstAgainstSecond('bare statements', { atLeast: 1.3 }, [
        {
          name: 'settings-service',
          does: 'verifies the HS256 token, checks revocation and persona, scans the JSON text, writes setting and history in a REPEATABLE READ transaction, responds with the setting and its ETag',
          measure: async (seconds) => (await ours.run(seconds, put)).perSecond,
        },
        {
          name: 'bare pg',
          does: 'BEGIN REPEATABLE READ; the same upsert with its history row; COMMIT; no HTTP, no checks',
          measure: (seconds) => bare.run(seconds, bareWrite),
        },
        {
          name: 'bare pg, shortest',
          does: 'the same upsert with its history row as a single statement, in one round trip: the bare limit for one write per transaction',
          measure: (seconds) => bare.run(seconds, shortestWrite),
        },
      ]),
      conditions: [
        `${CONNECTIONS} writers, 20 database connections, ${CONNECTIONS * KEYS_PER_CONNECTION} keys, values of ${VALUE_TEXT.length} bytes`,
        'the service writes concurrent requests with one statement and one commit; neither bare side does',
      ],
      close: closing(ours, bare, platform),
    };
  },
};

const BULK = 100;

/** Reads of many settings of one subsystem, together and one by one. */
export const settingsBulkRead: Benchmark = {
  id: 'settings-bulk-read',
  title: `Reading ${BULK} settings in one request, compared with ${BULK} requests`,
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth', 'settings']);
    const { owner } = platform.settings.databases.settings;
    await runSql(owner, fill(BULK), 'VACUUM ANALYZE settings.setting');
    const load = new HttpLoad(platform.url('settings'), CONNECTIONS);
    const headers = headersOf(platform);
    const names = Array.from({ length: BULK }, (_none, index) => `Key-${String(index + 1).padStart(7, '0')}`);
    const settings = names.map((settingName) => ({ subsystemName: `Size${BULK}`, settingName }));
    const body = JSON.stringify({ settings });
    const path = '/platform/v1/commands/read';
    const together = { method: 'POST', path, headers, body, expect: 200 } as const;
    const single = (connection: number, count: number) => {
      const name = names[(connection + count) % BULK]!;
      const value = `/platform/v1/subsystems/Size${BULK}/settings/${name}/value`;
      const { authorization } = headers;
      return { method: 'GET', path: value, headers: { authorization }, expect: 200 } as const;
    };
    return {
      unit: 'settings/s',
      maxRounds: 3,
      ...firstAgainstSecond('single reads', { atLeast: 5 }, [
        {
          name: 'together',
          does: `POST commands/read with ${BULK} names`,
          measure: async (seconds) => (await load.rate(together)(seconds)) * BULK,
        },
        {
          name: 'one by one',
          does: 'GET …/value',
          measure: async (seconds) => (await load.run(seconds, single)).perSecond,
        },
      ]),
      conditions: [`${CONNECTIONS} connections, values of 7 bytes`],
      close: closing(load, platform),
    };
  },
};

const SIZES = [1, 100, 10_000, 1_000_000] as const;
const REFERENCE = 100;

const nameOf = (size: number): string => `${size.toLocaleString('en-US')} settings`;

/** Inserts the subsystem `sizeN` with N settings. All subsystems share one table. */
const fill = (size: number): string => `
  INSERT INTO settings.setting (subsystem_key, setting_key, subsystem_name, setting_name, value_text)
  SELECT 'size${size}', 'key-' || lpad(n::text, 7, '0'), 'Size${size}', 'Key-' || lpad(n::text, 7, '0'), '{"n":' || n || '}'
  FROM generate_series(1, ${size}) AS n`;

/** Latency of a page of a list, by the length of the list. */
export const settingsList: Benchmark = {
  id: 'settings-list',
  title: 'GET of the first page of a subsystem, by the size of the subsystem',
  async prepare(servers) {
    const platform = await servers.startPlatform(['auth', 'settings']);
    const { owner } = platform.settings.databases.settings;
    await runSql(owner, ...SIZES.map(fill), 'VACUUM ANALYZE settings.setting');
    const load = new HttpLoad(platform.url('settings'), 1);
    const headers = { authorization: `Bearer ${makeAccessToken(platform.settings)}` };
    const measure = (size: number) => async (seconds: number) => {
      const path = `/platform/v1/subsystems/Size${size}/settings`;
      const { latenciesMs } = await load.run(seconds, () => ({ method: 'GET', path, headers, expect: 200 }));
      return median(latenciesMs);
    };
    return {
      unit: 'ms',
      maxRounds: 3,
      contestants: SIZES.map((size) => ({
        name: nameOf(size),
        does: `reads a page of ${Math.min(size, 100)}`,
        measure: measure(size),
      })),
      comparisons: SIZES.filter((size) => size !== REFERENCE).map((size) => ({
        title: `${nameOf(size)} : ${nameOf(REFERENCE)}`,
        of: nameOf(size),
        against: nameOf(REFERENCE),
        goal: { atMost: 1.1 },
      })),
      conditions: [
        'one connection; median latency of the page; all subsystems share one table of 1,010,101 settings',
      ],
      close: closing(load, platform),
    };
  },
};
