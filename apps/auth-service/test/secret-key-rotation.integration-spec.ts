import { randomBytes } from 'node:crypto';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createTestDatabase, eventually } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { administrator } from './admin-fixture';
import { agentOf, BACKEND, SECRET_KEY, migrateWithIdentities, postTo, startReplica } from './auth-fixture';

const NEW_KEY = randomBytes(32).toString('base64url');
const OLD_KEY = SECRET_KEY.toString('base64url');
const keys = (...list: string[]): NodeJS.ProcessEnv => ({
  SECRET_ENCRYPTION_KEYS: list.join(','),
  SECRET_ENCRYPTION_KEY: undefined,
  ACCESS_TOKEN_DEFAULT_SIGNING: 'asymmetric',
});
const [OLD, NEW] = [`1:${OLD_KEY}`, `of-2026:${NEW_KEY}`];

describe('replacing the key that seals secrets, under load on two replicas', () => {
  let database: TestDatabase;
  let serving: NestFastifyApplication[] = [];
  const failures: unknown[] = [];
  let requests = 0;
  let stopped = false;
  let load: Promise<void>;

  /**
   * Sends a request that proves an application's secret and gets a token with an asymmetric signature. Both
   * keys are sealed.
   */
  async function request(replica: NestFastifyApplication): Promise<void> {
    const user = { persona: 1, userName: 'ivy.internal' };
    const { status, body } = await postTo(replica, '/auth/token/trust-simple', { ...BACKEND, ...user });
    requests += 1;
    if (status !== 200) failures.push(body);
  }

  async function generateLoad(): Promise<void> {
    while (!stopped) await Promise.all(serving.map(request));
  }

  async function rollOut(environment: NodeJS.ProcessEnv): Promise<void> {
    for (const index of [0, 1]) {
      const next = await startReplica(database.url, { environment });
      const previous = serving[index];
      serving = serving.with(index, next);
      retired.push(...(previous === undefined ? [] : [previous]));
    }
  }
  const retired: NestFastifyApplication[] = [];

  beforeAll(async () => {
    database = await createTestDatabase({ migrate: migrateWithIdentities });
    serving = [await startReplica(database.url, { environment: keys(OLD) })];
    serving.push(await startReplica(database.url, { environment: { ...keys(), ...single() } }));
    load = generateLoad();
  }, 90_000);

  afterAll(async () => {
    stopped = true;
    await load;
    for (const replica of [...serving, ...retired]) await replica.close();
    await database.drop();
  });

  const single = (): NodeJS.ProcessEnv => ({
    SECRET_ENCRYPTION_KEYS: undefined,
    SECRET_ENCRYPTION_KEY: OLD_KEY,
  });

  /** Returns the first bytes of the stored secrets: 1 for the unnamed key, 2 for a named one. */
  async function versions(): Promise<number[]> {
    const rows = await database.query<{ version: number }>(
      `SELECT DISTINCT get_byte(ciphertext, 0) AS version FROM auth.application_secret
       UNION SELECT get_byte(private_ciphertext, 0) FROM auth.signing_key WHERE private_ciphertext IS NOT NULL ORDER BY 1`,
    );
    return rows.map(({ version }) => version);
  }

  const admin = (): ReturnType<typeof administrator> => administrator(database.ownerUrl);

  async function expectServed(): Promise<void> {
    const before = requests;
    for (const replica of serving) await request(replica);
    expect(requests).toBeGreaterThan(before);
    expect(failures).toEqual([]);
  }

  it('follows the steps of the operations page without a failed request', async () => {
    expect(await versions()).toEqual([1]);
    await rollOut(keys(OLD, NEW));
    await expectServed();
    await rollOut(keys(NEW, OLD));
    await expectServed();

    const environment = { SECRET_ENCRYPTION_KEYS: `${NEW},${OLD}`, SECRET_ENCRYPTION_KEY: '' };
    const secrets = (await database.query(`SELECT FROM auth.application_secret`)).length;
    const { exitCode, out, err } = await admin().run('secrets re-encrypt --batch 1', environment);
    expect([exitCode, out.split('\n')[0]]).toEqual([
      0,
      `Sealed anew: ${String(secrets)} application secrets.`,
    ]);
    expect(err).toContain(`application secrets: 1 of ${String(secrets)}`);
    expect(await versions()).toEqual([2]);
    await expectServed();

    const again = await admin().run('secrets re-encrypt --json', environment);
    expect(JSON.parse(again.out)).toEqual({
      'application secrets': 0,
      'signing keys': 0,
      'sign-ins under way': 0,
    });
    await rollOut(keys(NEW));
    await expectServed();
    stopped = true;
    await load;
    expect(failures).toEqual([]);
  }, 120_000);

  it('resumes after an interruption, and names secrets that no key opens', async () => {
    const stranger = {
      SECRET_ENCRYPTION_KEYS: `other:${randomBytes(32).toString('base64url')}`,
      SECRET_ENCRYPTION_KEY: '',
    };
    const refused = await admin().run('secrets re-encrypt', stranger);
    expect([refused.exitCode, refused.err]).toEqual([1, expect.stringContaining('application:demo-backend')]);
    expect(await versions()).toEqual([2]);

    const both = { SECRET_ENCRYPTION_KEYS: `${OLD},${NEW}`, SECRET_ENCRYPTION_KEY: '' };
    await database.query(
      `UPDATE auth.application_secret SET ciphertext = '\\x02' WHERE application_key = 'demo-reports'`,
    );
    const half = await admin().run('secrets re-encrypt', both);
    expect([half.exitCode, half.err]).toEqual([
      1,
      expect.stringContaining('no configured key opens application:demo-reports'),
    ]);
    expect(await versions()).toEqual([1, 2]);
  });
});

describe('re-encrypting every secret', () => {
  let database: TestDatabase;
  const environment = { SECRET_ENCRYPTION_KEYS: `${NEW},${OLD}`, SECRET_ENCRYPTION_KEY: '' };
  const admin = (): ReturnType<typeof administrator> => administrator(database.ownerUrl);
  const underOld = () =>
    database.query(`SELECT FROM auth.application_secret WHERE get_byte(ciphertext, 0) = 1`);

  beforeEach(async () => {
    database = await createTestDatabase({ migrate: migrateWithIdentities });
    for (let index = 0; index < 8; index += 1)
      await admin().run(`applications create bulk-${String(index)} --personas Customer --flows trust`);
  });
  afterEach(() => database.drop());

  it('misses none that was concurrently updated or sealed with the old key', async () => {
    // Frees space at the start of the table. Each written batch moves another row there. A scan in physical
    // order that is past that place would miss the row.
    await database.query(
      `DELETE FROM auth.application_secret WHERE application_key IN ('bulk-0', 'bulk-1', 'bulk-2')`,
    );
    await database.query('VACUUM auth.application_secret');
    await database.query(`CREATE FUNCTION auth.move() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        UPDATE auth.application_secret SET created_at = created_at + interval '1 s' WHERE application_key = 'bulk-7';
        RETURN NULL;
      END $$`);
    await database.query(`CREATE TRIGGER move AFTER UPDATE ON auth.application_secret
      FOR EACH STATEMENT WHEN (pg_trigger_depth() = 0) EXECUTE FUNCTION auth.move()`);
    const count = (await underOld()).length;
    const { exitCode, out } = await admin().run('secrets re-encrypt --batch 1', environment);
    expect([exitCode, await underOld()]).toEqual([0, []]);
    expect(out).toContain(`Sealed anew: ${String(count)} application secrets.`);
  }, 60_000);

  it('makes another pass for secrets sealed with the old key behind it', async () => {
    // Re-encrypting the first secret inserts one with the old key that comes earlier in the order of the
    // pass.
    await admin().run('applications create a-late-one --personas Customer --flows trust');
    await database.query(
      `CREATE TABLE auth.late AS SELECT * FROM auth.application_secret WHERE application_key = 'a-late-one'`,
    );
    await database.query(`DELETE FROM auth.application_secret WHERE application_key = 'a-late-one'`);
    await database.query(`CREATE FUNCTION auth.come_late() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        INSERT INTO auth.application_secret SELECT * FROM auth.late ON CONFLICT DO NOTHING;
        RETURN NULL;
      END $$`);
    await database.query(`CREATE TRIGGER come_late AFTER UPDATE ON auth.application_secret
      FOR EACH STATEMENT EXECUTE FUNCTION auth.come_late()`);
    const { exitCode } = await admin().run('secrets re-encrypt --batch 1', environment);
    const [late] = await database.query(
      `SELECT 1 FROM auth.application_secret WHERE application_key = 'a-late-one'`,
    );
    expect(late).toBeDefined();
    expect([exitCode, await underOld()]).toEqual([0, []]);
  }, 60_000);

  it('opens every secret, even those with the id of the first key, and --check changes nothing', async () => {
    const wrong = {
      SECRET_ENCRYPTION_KEYS: `1:${randomBytes(32).toString('base64url')}`,
      SECRET_ENCRYPTION_KEY: '',
    };
    for (const line of ['secrets re-encrypt', 'secrets re-encrypt --check'])
      expect(await admin().run(line, wrong)).toMatchObject({
        exitCode: 1,
        err: expect.stringContaining('no configured key opens application:bulk-0 version 1'),
      });
    const checked = await admin().run('secrets re-encrypt --check', environment);
    const count = (await underOld()).length;
    expect(checked).toMatchObject({
      exitCode: 0,
      out: `Opened: ${String(count)}. Sealed with another key than the first: ${String(count)}.`,
    });
  });

  it('keeps a replica unready without a key that is still needed', async () => {
    await admin().run('secrets re-encrypt', environment);
    await database.query(
      `UPDATE auth.application_secret SET ciphertext = '\\x01' || substring(ciphertext FROM 2) WHERE application_key = 'bulk-3'`,
    );
    const replica = await startReplica(database.url, { environment: keys(NEW) });
    try {
      const ready = async () => (await agentOf(replica).get('/health/ready')).body.checks['sealing-keys'];
      expect(await ready()).toBe('failed');
      await database.query(`DELETE FROM auth.application_secret WHERE application_key = 'bulk-3'`);
      // The result of a check is cached for 1 s.
      await eventually(async () => expect(await ready()).toBe('ok'));
    } finally {
      await replica.close();
    }
  });
});

describe('a replica without the key that sealed the database', () => {
  it('never becomes ready, so that a roll-out or a restore with the wrong secrets stops', async () => {
    const database = await createTestDatabase({ migrate: migrateWithIdentities });
    const first = await startReplica(database.url, { environment: keys(OLD) });
    const other = await startReplica(database.url, { environment: keys(`1:${NEW_KEY}`) });
    try {
      expect((await agentOf(first).get('/health/ready')).body).toMatchObject({
        checks: { 'signing-keys': 'ok' },
      });
      const { status, body } = await agentOf(other).get('/health/ready');
      expect({ status, body }).toMatchObject({ status: 503, body: { checks: { 'signing-keys': 'failed' } } });
    } finally {
      await Promise.all([first.close(), other.close()]);
      await database.drop();
    }
  });
});
