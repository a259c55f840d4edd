import { runMigrations } from '@platform/database';
import {
  eventually,
  pgbouncerVersion,
  startPgbouncer,
  startPoolerDouble,
  testsThatNeed,
} from '@platform/testing';
import type { Pooler } from '@platform/testing';
import { Client } from 'pg';
import request from 'supertest';
import { DEFAULT_ISOLATION, MIGRATIONS, SCHEMA, appRoleGrants } from '../src/database-layout';
import { PARTNER, prepareSettings, settingPath, startSettings } from './settings-fixture';
import type { SettingsFixture, SettingsSurroundings } from './settings-fixture';

const PAIRS = 300;
const WANTED = {
  default_transaction_isolation: DEFAULT_ISOLATION.toLowerCase(),
  statement_timeout: '10s',
  idle_in_transaction_session_timeout: '30s',
};

const VERSION = pgbouncerVersion();
const { describe: describeWithPgbouncer } = testsThatNeed(
  'replicas behind a real PgBouncer',
  VERSION === null ? 'no PgBouncer (.ci/install pgbouncer brings it)' : null,
);

/** Each of them drops the session settings that replicas request when they connect. */
const POOLERS: [string, (server: string) => Promise<Pooler>][] = [
  ['a stand-in for a pooler', startPoolerDouble],
];
if (VERSION !== null) POOLERS.push([`PgBouncer ${VERSION} in transaction mode`, startPgbouncer]);

describeWithPgbouncer('behind PgBouncer', () => {
  it('a transaction keeps its session, and the next one may get another', async () => {
    const surroundings = await prepareSettings();
    const pooler = await startPgbouncer();
    const clients = Array.from(
      { length: 2 },
      () => new Client({ connectionString: pooler.url(surroundings.database.ownerUrl) }),
    );
    const [one, two] = clients as [Client, Client];
    for (const client of clients) await client.connect();
    const sessionOf = async (client: Client): Promise<number> =>
      (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]!.pid;
    const first = await sessionOf(one);
    // The second client gets the session that the first one used, which proves that transaction pooling is in
    // effect.
    expect(await sessionOf(two)).toBe(first);
    await one.query('BEGIN');
    expect(await sessionOf(one)).toBe(first);
    expect(await sessionOf(two)).not.toBe(first);
    expect(await sessionOf(one)).toBe(first);
    await one.query('COMMIT');
    for (const client of clients) await client.end();
    await pooler.stop();
    await surroundings.close();
  });
});

describe.each(POOLERS)('two replicas behind %s', (_pooler, startPooler) => {
  let surroundings: SettingsSurroundings;
  let pooler: Pooler;
  let service: SettingsFixture;

  const isReady = async (): Promise<number> => (await request(service.urls[0]!).get('/health/ready')).status;
  const roleOf = (url: string): string => new URL(url).username;

  beforeAll(async () => {
    surroundings = await prepareSettings({
      databaseUrl: async (url) => (pooler = await startPooler(url)).url(url),
    });
    service = await startSettings({ replicas: 2, surroundings });
  });

  afterAll(async () => {
    await service.close();
    await surroundings.close();
    await pooler.stop();
  });

  it('are not ready while the sessions of their role lack isolation and time limits', async () => {
    const { status, body } = await request(service.urls[0]!).get('/health/ready');
    expect({ status, body }).toMatchObject({
      status: 503,
      body: { checks: { database: 'failed', migrations: 'ok' } },
    });
  });

  it('let one of two creates with If-None-Match: * succeed, and refuse the other', async () => {
    const put = async (url: string, name: string, value: number): Promise<number> => {
      const response = await request(url)
        .put(settingPath('Pooler', name))
        .set(PARTNER)
        .set('If-None-Match', '*')
        .send({ settingValue: value });
      return response.status;
    };
    const outcomes = new Map<string, number>();
    for (let pair = 0; pair < PAIRS; pair += 10) {
      await Promise.all(
        Array.from({ length: 10 }, async (_, index) => {
          const name = `pair-${String(pair + index)}`;
          const statuses = await Promise.all(service.urls.map((url, value) => put(url, name, value)));
          const outcome = statuses.sort().join(' and ');
          outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        }),
      );
    }
    expect(Object.fromEntries(outcomes)).toEqual({ '200 and 412': PAIRS });
  }, 60_000);

  it('are ready once the migration has set the session defaults of their role, if need be as that role itself', async () => {
    const { database, environment } = surroundings;
    const appUrl = environment['DATABASE_URL']!;
    const url = database.ownerUrl;
    const settings = { url, schema: SCHEMA, applicationName: 'test', migrations: MIGRATIONS };
    await runMigrations(settings, { appRole: roleOf(appUrl), appUrl, appRoleSettings: WANTED });
    // Existing sessions keep the settings with which they began.
    await database.querySuperuser(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = $1 AND datname = current_database()',
      [roleOf(appUrl)],
    );
    // A check's result is cached for one second.
    await eventually(async () => expect(await isReady()).toBe(200));
  });

  it('keep a statement timeout that the operator has set', async () => {
    const { database } = surroundings;
    const { role, url: appUrl } = await database.createRole();
    await database.querySuperuser(`ALTER ROLE ${role} SET statement_timeout = '8s'`);
    const url = database.ownerUrl;
    const settings = { url, schema: SCHEMA, applicationName: 'test', migrations: MIGRATIONS };
    await runMigrations(settings, { appRole: role, appUrl, appRoleGrants, appRoleSettings: WANTED });
    const [found] = await database.query<{ settings: string[] }>(
      `SELECT array_agg(setting ORDER BY setting) AS settings
       FROM pg_db_role_setting, unnest(setconfig) AS setting WHERE setrole = $1::regrole`,
      [role],
    );
    expect(found!.settings).toEqual([
      'default_transaction_isolation=repeatable read',
      'idle_in_transaction_session_timeout=30s',
      'statement_timeout=8s',
    ]);
  });
});
