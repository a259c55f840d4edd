import { chownSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createTestDatabase, eventually, startPrivatePostgresql, TcpProxy } from '@platform/testing';
import type { TestDatabase, TestRole } from '@platform/testing';
import { Client } from 'pg';
import type { DataSource } from 'typeorm';
import { isConnectionError, PoolDriver, runMigrations } from '../src';
import { connectCounters, counterSettings } from './counters';

const IS_STANDBY = 'SELECT pg_is_in_recovery() AS standby, pg_sleep(0.1)';

/** Starts a hot standby with the same user and a database of the same name. */
async function startStandby(url: string) {
  const { server, stop } = await startPrivatePostgresql();
  const { username, password, pathname } = new URL(url);
  const admin = new Client({ connectionString: server.url });
  await admin.connect();
  await admin.query(`CREATE ROLE ${admin.escapeIdentifier(username)} LOGIN PASSWORD '${password}'`);
  await admin.query(`CREATE DATABASE ${admin.escapeIdentifier(pathname.slice(1))}`);
  const { rows } = await admin.query<{ data_directory: string }>('SHOW data_directory');
  await admin.end();
  const signal = join(rows[0]!.data_directory, 'standby.signal');
  const { uid, gid } = statSync(rows[0]!.data_directory);
  writeFileSync(signal, '');
  chownSync(signal, uid, gid);
  await server.crash();
  await server.start();
  return { server, stop };
}

describe('a database with several hosts', () => {
  let database: TestDatabase;
  let user: TestRole;
  let standby: Awaited<ReturnType<typeof startStandby>>;
  let first: TcpProxy;
  let second: TcpProxy;
  let toStandby: TcpProxy;
  let dataSource: DataSource | undefined;

  const through = (proxies: TcpProxy[], parameters = ''): string => {
    const url = new URL(user.url);
    const hosts = proxies.map(({ port }) => `127.0.0.1:${port}`).join(',');
    return `postgres://${url.username}:${url.password}@${hosts}${url.pathname}${parameters}`;
  };
  const open = async (proxies: TcpProxy[], parameters?: string): Promise<DataSource> => {
    dataSource = await connectCounters(through(proxies, parameters), { poolSize: 20 });
    return dataSource;
  };
  /** Returns, for 20 connections at once, whether each is at a standby. */
  const seenStandbys = async (): Promise<boolean[]> => {
    const rows = await Promise.all(Array.from({ length: 20 }, () => dataSource!.query(IS_STANDBY)));
    return rows.map(([{ standby: isStandby }]) => isStandby as boolean);
  };

  beforeAll(async () => {
    database = await createTestDatabase({ migrate: () => Promise.resolve() });
    user = await database.createRole();
    await database.query(`GRANT CREATE ON DATABASE ${new URL(user.url).pathname.slice(1)} TO ${user.role}`);
    standby = await startStandby(user.url);
    [first, second, toStandby] = (await Promise.all(
      [user.url, user.url, standby.server.url].map((url) => TcpProxy.start(url)),
    )) as [TcpProxy, TcpProxy, TcpProxy];
  });

  afterEach(async () => {
    await Promise.all([first, second, toStandby].map((proxy) => proxy.restore()));
    await dataSource?.destroy();
    dataSource = undefined;
  });

  afterAll(async () => {
    await Promise.all([first, second, toStandby].map((proxy) => proxy.stop()));
    await Promise.all([standby.stop(), database.drop()]);
  });

  it('gets connections at all of its hosts', async () => {
    await open([first, toStandby]);
    expect(new Set(await seenStandbys())).toEqual(new Set([true, false]));
  });

  it('uses no read-only host with target_session_attrs=read-write', async () => {
    await open([toStandby, first, toStandby], '?target_session_attrs=read-write');
    expect(new Set(await seenStandbys())).toEqual(new Set([false]));
    await expect(open([toStandby], '?target_session_attrs=read-write')).rejects.toThrow(
      'the server takes no writes',
    );
  });

  it('migrates at the host that accepts writes', async () => {
    const url = through([toStandby, first], '?target_session_attrs=read-write');
    expect(await runMigrations(counterSettings(url))).toHaveLength(2);
  });

  it('uses the next host when one refuses connections, at startup and later', async () => {
    await first.refuse();
    await open([first, second]);
    await seenStandbys();
    await first.restore();
    await second.refuse();
    await eventually(() => expect(PoolDriver.of(dataSource!).pool.totalCount).toBe(0));
    expect(new Set(await seenStandbys())).toEqual(new Set([false]));
  });

  it('abandons a frozen host, and fails the statement that waits there', async () => {
    await second.refuse();
    await open([first, second]);
    await seenStandbys();
    await second.restore();
    const startedAtMs = performance.now();
    first.freeze();
    const lost = await dataSource!.query('SELECT 1').catch((error: unknown) => error);
    expect(isConnectionError(lost)).toBe(true);
    await seenStandbys();
    expect(performance.now() - startedAtMs).toBeLessThan(6_000);
  });

  it('does not abandon a host over a slow statement', async () => {
    await open([first, second]);
    await expect(dataSource!.query("SELECT pg_sleep(6), 'done' AS word")).resolves.toMatchObject([
      { word: 'done' },
    ]);
  });

  it('follows a promotion to the new primary', async () => {
    await open([first, toStandby], '?target_session_attrs=read-write');
    await seenStandbys();
    await first.refuse();
    await expect(seenStandbys()).rejects.toThrow();
    const admin = new Client({ connectionString: standby.server.url });
    await admin.connect();
    await admin.query('SELECT pg_promote()');
    await admin.end();
    await eventually(async () => expect(new Set(await seenStandbys())).toEqual(new Set([false])));
  });
});
