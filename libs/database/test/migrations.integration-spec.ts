import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { createTestDatabase } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { migrateFromEnvironment, runMigrations } from '../src';
import { MIGRATION_NAMES, connectCounters, counterSettings } from './counters';

/** Type and length of the server's BackendKeyData message. The process id and the secret follow. */
const BACKEND_KEY_DATA = Buffer.from([0x4b, 0, 0, 0, 12]);
const empty = (): Promise<void> => Promise.resolve();
const grants = (role: string): string[] => [`GRANT SELECT, UPDATE ON counting.counter TO ${role}`];

/** Starts a proxy that imitates PgBouncer: it gives clients a process id that is not their server's. */
async function startPooler(databaseUrl: string): Promise<{ url: string; stop: () => void }> {
  const { hostname, port } = new URL(databaseUrl);
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    client.pipe(upstream);
    upstream.on('data', (bytes) => {
      const at = bytes.indexOf(BACKEND_KEY_DATA);
      if (at !== -1) bytes.writeInt32BE(-1, at + BACKEND_KEY_DATA.length);
      client.write(bytes);
    });
    upstream.on('close', () => client.destroy());
    client.on('error', () => upstream.destroy());
  });
  await once(server.listen(0, hostname), 'listening');
  const url = new URL(databaseUrl);
  url.port = String((server.address() as AddressInfo).port);
  return { url: url.toString(), stop: () => void server.close() };
}

describe('migrations', () => {
  let database: TestDatabase;

  beforeEach(async () => {
    database = await createTestDatabase({ migrate: empty });
  });

  afterEach(() => database.drop());

  it('are applied once, however many processes run them concurrently', async () => {
    const settings = counterSettings(database.ownerUrl);
    const applied = await Promise.all([1, 2, 3, 4].map(() => runMigrations(settings)));
    expect(applied.filter((names) => names.length > 0)).toEqual([MIGRATION_NAMES]);
    expect(await database.query('SELECT name FROM counting.migrations ORDER BY id')).toEqual(
      MIGRATION_NAMES.map((name) => ({ name })),
    );
  });

  it('warn of a pooler, which may hold their lock in another session', async () => {
    const written = jest.spyOn(process.stdout, 'write').mockReturnValue(true);
    const pooler = await startPooler(database.ownerUrl);
    await runMigrations(counterSettings(database.ownerUrl));
    expect(written.mock.calls.join('')).not.toContain('a pooler is between');
    await runMigrations(counterSettings(pooler.url));
    expect(written.mock.calls.join('')).toContain('a pooler is between');
    pooler.stop();
  });

  it('live in the schema of the service', async () => {
    await runMigrations(counterSettings(database.ownerUrl));
    const tables = await database.query(
      "SELECT DISTINCT schemaname FROM pg_tables WHERE tablename IN ('counter', 'migrations')",
    );
    expect(tables).toEqual([{ schemaname: 'counting' }]);
  });

  it("grant the application's role only what it needs", async () => {
    const { role, url } = await database.createRole();
    const run = (): Promise<string[]> =>
      runMigrations(counterSettings(database.ownerUrl), { appRole: role, appRoleGrants: grants });
    await Promise.all([run(), run()]);
    const app = await connectCounters(url, { poolSize: 1 });
    try {
      await app.query("UPDATE counter SET value = value + 1 WHERE name = 'hits'");
      await expect(app.query('DELETE FROM counter')).rejects.toMatchObject({ code: '42501' });
      await expect(app.query('CREATE TABLE counting.mine (id int)')).rejects.toMatchObject({ code: '42501' });
    } finally {
      await app.destroy();
    }
  });

  it("run as the migrating user and grant to the application's user, both from the environment", async () => {
    const { url } = await database.createRole();
    const { url: _url, poolSize: _poolSize, ...settings } = counterSettings('');
    const written = jest.spyOn(process.stdout, 'write').mockReturnValue(true);
    const env = { MIGRATION_DATABASE_URL: database.ownerUrl, DATABASE_URL: url };
    expect(await migrateFromEnvironment({ ...settings, appRoleGrants: grants }, env)).toEqual(
      MIGRATION_NAMES,
    );
    expect(written.mock.calls.join('')).toContain('applied CreateCounters1700000000001');
    const app = await connectCounters(url, { poolSize: 1 });
    expect(await app.query('SELECT value FROM counter')).toEqual([{ value: 0 }]);
    await app.destroy();
  });

  it('need an address', async () => {
    await expect(migrateFromEnvironment(counterSettings(''), {})).rejects.toThrow('DATABASE_URL');
  });

  it('fail without revealing the address if the database does not come up', async () => {
    const env = { DATABASE_URL: 'postgres://app:hunter2@localhost:9/none' };
    const failed = migrateFromEnvironment(counterSettings(''), env, 1);
    await expect(failed).rejects.toMatchObject({
      name: 'CommandError',
      message: expect.stringMatching(/^the database cannot be reached: (?!.*hunter2).*ECONNREFUSED/),
    });
  });
});
