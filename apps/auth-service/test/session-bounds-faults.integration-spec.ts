import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { createTestDatabase, eventually, permitFaults } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import { BoundSessionsJob } from '../src/token/bound-sessions.job';
import { BACKEND, claimsOf, migrateWithIdentities, postTo, startReplica } from './auth-fixture';

const SESSIONS_PER_USER = 2;
const PERSON = { persona: 2, userName: 'carl.customer' };

describe('sessions that one run failed to bound are bounded by the next, without another request', () => {
  let database: TestDatabase;
  let replica: NestFastifyApplication;
  beforeAll(async () => {
    database = await createTestDatabase({ migrate: migrateWithIdentities });
    const environment = { SESSIONS_PER_USER: String(SESSIONS_PER_USER) };
    replica = await startReplica(database.url, { environment });
  });
  afterAll(async () => {
    await replica.close();
    await database.drop();
  });
  beforeEach(async () => {
    // The job's scheduled runs may meet the faults as well.
    permitFaults();
    await endFaults();
    await database.query('DELETE FROM auth.refresh_family');
  });

  /** Opens a session that was just refreshed and has 300 more used tokens. */
  async function openOversized(): Promise<string> {
    const { body } = await postTo(replica, '/auth/token/trust-simple', { ...BACKEND, ...PERSON });
    const { refreshToken } = body as { refreshToken: string };
    const sid = String(claimsOf(refreshToken).sid);
    await database.query(
      `INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at, rotated_at, successor_jti, rotated_in)
       SELECT gen_random_uuid(), $1, at, at + interval '365 days', at + interval '1 second', gen_random_uuid(), 3
       FROM generate_series(1, 300) AS n, LATERAL (SELECT now() - interval '2 hours' - n * interval '1 second' AS at) AS issued`,
      [sid],
    );
    expect((await postTo(replica, '/auth/token/refresh', { refreshToken })).status).toBe(200);
    return sid;
  }
  const tokensOf = async (sids: readonly string[]): Promise<number[]> => {
    const rows = await database.query<{ tokens: number }>(
      `SELECT (SELECT count(*)::int FROM auth.refresh_token WHERE family_id = asked.sid) AS tokens
       FROM unnest($1::uuid[]) WITH ORDINALITY AS asked (sid, position) ORDER BY position`,
      [sids],
    );
    return rows.map(({ tokens }) => tokens);
  };
  const liveSessions = async (): Promise<number> => {
    const sql = 'SELECT count(*)::int AS live FROM auth.refresh_family WHERE revoked_at IS NULL';
    const [row] = await database.query<{ live: number }>(sql);
    return row!.live;
  };
  const bound = (): Promise<void> => replica.get(BoundSessionsJob).run();

  it('after their look-up failed', async () => {
    const sids = [await openOversized(), await openOversized(), await openOversized()];
    await database.query('ALTER TABLE auth.refresh_family RENAME TO hidden');
    await expect(bound()).rejects.toThrow('not bounded');
    await database.query('ALTER TABLE auth.hidden RENAME TO refresh_family');
    await bound();
    expect(await tokensOf(sids)).toEqual([100, 100, 100]);
    expect(await liveSessions()).toBe(SESSIONS_PER_USER);
  });

  const endFaults = async (): Promise<void> => {
    await database.query('DROP FUNCTION IF EXISTS auth.fault CASCADE');
    await database.query('ALTER TABLE auth.refresh_token DISABLE ROW LEVEL SECURITY');
  };
  /** Makes deletes of refresh tokens fail. @param fault PL/pgSQL statement that runs before each delete */
  const failDeletes = async (fault: string, when = ''): Promise<void> => {
    await database.query(
      `CREATE FUNCTION auth.fault() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${fault}; RETURN OLD; END $$`,
    );
    await database.query(`CREATE TRIGGER fault BEFORE DELETE ON auth.refresh_token
      FOR EACH ROW ${when} EXECUTE FUNCTION auth.fault()`);
  };
  const LOSE_CONNECTION = 'PERFORM pg_terminate_backend(pg_backend_pid())';

  it.each([
    ['after a failed statement', `RAISE 'not now'`],
    ['after a lost connection', LOSE_CONNECTION],
  ])('%s, while other sessions are bounded', async (_, fault) => {
    const sids = [await openOversized(), await openOversized(), await openOversized()];
    await failDeletes(fault, `WHEN (OLD.family_id = '${sids[0]!}')`);
    // The session after the failing one may have failed too, on the lost connection. The next run tries that
    // session first.
    for (let run = 0; run < 2; run += 1) await expect(bound()).rejects.toThrow('not bounded');
    expect(await tokensOf(sids)).toEqual([302, 100, 100]);
    expect(await liveSessions()).toBe(SESSIONS_PER_USER);
    await endFaults();
    // The pool may still contain a lost connection.
    await eventually(bound);
    expect(await tokensOf(sids)).toEqual([100, 100, 100]);
  });

  it('but a run stops after several lost connections in a row; the next starts with other work', async () => {
    for (let opened = 0; opened < 5; opened += 1) await openOversized();
    await failDeletes(LOSE_CONNECTION);
    await expect(bound()).rejects.toThrow('3 were not bounded');
    await eventually(async () => {
      await expect(bound()).rejects.toThrow();
      expect(await liveSessions()).toBe(SESSIONS_PER_USER);
    });
    await endFaults();
    await eventually(bound);
  });

  it('while one of them is unreadable', async () => {
    const sids = [await openOversized(), await openOversized(), await openOversized()];
    await database.query(`CREATE FUNCTION auth.fault(family_id uuid) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN
        IF family_id = '${sids[1]!}' THEN RAISE 'invalid page' USING ERRCODE = 'XX001'; END IF;
        RETURN true;
      END $$`);
    await database.query('CREATE POLICY readable ON auth.refresh_token USING (auth.fault(family_id))');
    await database.query('ALTER TABLE auth.refresh_token ENABLE ROW LEVEL SECURITY');
    await expect(bound()).rejects.toThrow('1 were not bounded');
    await endFaults();
    expect(await tokensOf(sids)).toEqual([100, 302, 100]);
    expect(await liveSessions()).toBe(SESSIONS_PER_USER);
  });
});
