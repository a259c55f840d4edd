import { randomBytes } from 'node:crypto';
import { Metrics } from '@platform/service-defaults';
import { SYSTEM_CLOCK } from '@platform/time';
import type { Clock } from '@platform/time';
import { DataSource } from 'typeorm';
import { TokenAuditRepository } from '../src/audit/token-audit.repository';
import { AUTH_CONFIG } from '../src/config';
import type { AuthConfig } from '../src/config';
import { PurgeExpiredJob } from '../src/purges/purge-expired.job';
import { startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';
import { EXPIRING_TABLES, expiredRowsOfAuth } from './scale-rows';

/** Enough rows for more than two statements of a purge. */
const BACKLOG = Math.max(20_001, Number(process.env['TEST_SCALE_ROWS'] ?? 0));

describe('the purge of expired rows', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService();
  });
  afterAll(() => service.stop());

  const openFamily = async (subject: string, tokensExpireInDays: readonly number[]): Promise<void> => {
    await service.database.query(
      `WITH family AS (
         INSERT INTO auth.refresh_family (family_id, subject, application_key, flow, persona_limit, auth_time, created_at)
         VALUES (gen_random_uuid(), $1, 'demo-backend', 'user', 31, now() - interval '900 days', now() - interval '900 days')
         RETURNING family_id)
       INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at)
       SELECT gen_random_uuid(), family_id, now(), now() + days * interval '1 day' FROM family, unnest($2::float8[]) AS days`,
      [subject, tokensExpireInDays],
    );
  };
  const tokensOf = async (subject: string): Promise<number | null> => {
    const [row] = await service.database.query<{ tokens: number }>(
      `SELECT (SELECT count(*)::int FROM auth.refresh_token WHERE family_id = f.family_id) AS tokens
       FROM auth.refresh_family f WHERE subject = $1`,
      [subject],
    );
    return row?.tokens ?? null;
  };

  it('deletes a session with its last token, but not while one is valid or expired within the last day', async () => {
    await openFamily('ended', [-400, -2, -1.1]);
    await openFamily('lives', [-400, -2, 1]);
    await openFamily('ended just now', [-0.5]);
    await service.app.get(PurgeExpiredJob).run();
    expect(await tokensOf('ended')).toBeNull();
    expect(await tokensOf('lives')).toBe(1);
    expect(await tokensOf('ended just now')).toBe(1);
  });

  it('deletes a backlog of every kind in small statements, and a kind that fails does not block the others', async () => {
    const { database } = service;
    // Makes statements that delete more than 10,000 rows fail. They might exceed the statement timeout in
    // every run.
    await database.query(`
      CREATE FUNCTION auth.refuse_large() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF (SELECT count(*) FROM removed) > 10000 THEN RAISE 'too many rows in one statement'; END IF;
        RETURN NULL;
      END $$`);
    await database.query(
      `CREATE FUNCTION auth.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'not now'; END $$`,
    );
    for (const table of EXPIRING_TABLES)
      await database.query(`CREATE TRIGGER refuse_large AFTER DELETE ON auth.${table} REFERENCING OLD TABLE AS removed
        FOR EACH STATEMENT EXECUTE FUNCTION auth.refuse_large()`);
    await database.query(`CREATE TRIGGER refuse BEFORE DELETE ON auth.trust_replay
      FOR EACH ROW EXECUTE FUNCTION auth.refuse()`);
    // Creates the triggers before the rows, because the service's own job may run at any time.
    for (const statement of [...expiredRowsOfAuth(BACKLOG), 'ANALYZE']) await database.query(statement);
    const remaining = async (): Promise<Record<string, number>> => {
      const counts = EXPIRING_TABLES.map((table) => `(SELECT count(*)::int FROM auth.${table}) AS ${table}`);
      return (await database.query<Record<string, number>>(`SELECT ${counts.join(', ')}`))[0]!;
    };
    const begun = performance.now();
    await expect(service.app.get(PurgeExpiredJob).run()).rejects.toThrow('1 purges failed');
    if (process.env['TEST_SCALE_ROWS'] !== undefined)
      process.stdout.write(
        `purged ${String(BACKLOG)} of each kind in ${(performance.now() - begun).toFixed(0)} ms\n`,
      );
    const none = Object.fromEntries(EXPIRING_TABLES.map((table) => [table, 0]));
    const others = { refresh_family: 2, refresh_token: 2 };
    expect(await remaining()).toEqual({ ...none, ...others, trust_replay: BACKLOG });
    await database.query('DROP TRIGGER refuse ON auth.trust_replay');
    await service.app.get(PurgeExpiredJob).run();
    expect(await remaining()).toEqual({ ...none, ...others });
  }, 600_000);

  const jobOf = (clock: Clock, metrics = new Metrics()): PurgeExpiredJob => {
    const { app } = service;
    return new PurgeExpiredJob(
      ...([app.get(DataSource), app.get(TokenAuditRepository)] as const),
      ...([app.get<AuthConfig>(AUTH_CONFIG), clock, metrics] as const),
    );
  };
  const clockAhead = (ms: number): Clock => ({
    now: () => new Date(SYSTEM_CLOCK.now().getTime() + ms),
    monotonicMs: () => SYSTEM_CLOCK.monotonicMs(),
  });

  it.each([-31_000, 31_000, -95_000_000_000])(
    'deletes nothing while the clocks of the database and the replica differ by %d ms',
    async (differenceMs) => {
      const { database } = service;
      await database.query(`
        INSERT INTO auth.revocations (domain, identifier, revocation_date, revoked_by_subject, expires_at)
        VALUES ('jti', 'expired', now(), 's', now() - interval '1 second')`);
      const used = `decode('${randomBytes(32).toString('hex')}', 'hex')`;
      await database.query(
        `INSERT INTO auth.trust_replay VALUES ('a', ${used}, now() - interval '400 seconds')`,
      );
      const remaining = (): Promise<object[]> =>
        database.query(`SELECT (SELECT count(*)::int FROM auth.revocation WHERE identifier = 'expired') AS revocations,
          (SELECT count(*)::int FROM auth.trust_replay WHERE authentication_code = ${used}) AS signatures`);
      const metrics = new Metrics();
      await jobOf(clockAhead(differenceMs), metrics).run();
      expect(await remaining()).toEqual([{ revocations: 1, signatures: 1 }]);
      expect(await metrics.registry.metrics()).toContain('auth_purges_put_off_total 1');
      await jobOf(clockAhead(Math.sign(differenceMs) * 25_000)).run();
      expect(await remaining()).toEqual([{ revocations: 0, signatures: 0 }]);
    },
  );

  it('stops with the service: a backlog does not delay the shutdown', async () => {
    await openFamily('expired as the service stopped', [-400]);
    const job = jobOf(SYSTEM_CLOCK);
    await job.onApplicationShutdown();
    await job.run();
    expect(await tokensOf('expired as the service stopped')).toBe(1);
  });

  const revocations = async (): Promise<unknown[]> => {
    const rows = await service.database.query(
      `SELECT domain || ' ' || identifier AS name FROM auth.revocations WHERE revoked_by_subject = 's' ORDER BY 1`,
    );
    return rows.map(({ name }) => name);
  };

  it('deletes revocations of every domain after 366 days, when no token that they cover can be valid', async () => {
    await service.database.query(
      `INSERT INTO auth.revocations (domain, identifier, revocation_date, revoked_by_subject)
       SELECT domain, days::text, now() - days * interval '1 day', 's'
       FROM unnest(ARRAY['jti', 'sid', 'svc-personid', 'internal-legacy', 'sub', 'client_id']) AS domain,
         unnest(ARRAY[365, 366, 367]) AS days`,
    );
    await service.app.get(PurgeExpiredJob).run();
    const domains = ['client_id', 'internal-legacy', 'jti', 'sid', 'sub', 'svc-personid'];
    expect(await revocations()).toEqual(domains.flatMap((domain) => [`${domain} 365`, `${domain} 366`]));
    await service.database.query('DELETE FROM auth.revocations');
  });

  it('deletes revocations of a token or session at its known expiry, and the session stays ended', async () => {
    const [family] = await service.database.query<{ sid: string }>('SELECT gen_random_uuid()::text AS sid');
    await service.database.query(
      `INSERT INTO auth.refresh_family (family_id, subject, application_key, flow, persona_limit, auth_time)
       VALUES ($1::uuid, 'opened while it ended', 'demo-backend', 'user', 31, now())`,
      [family!.sid],
    );
    await service.database.query(
      `INSERT INTO auth.revocations (domain, identifier, revocation_date, revoked_by_subject, expires_at)
       VALUES ('jti', 'expired', now(), 's', now() - interval '1 second'), ('jti', 'lives', now(), 's', now() + interval '1 minute'),
         ('jti', 'unknown', now(), 's', NULL), ('sid', $1, now(), 's', now() - interval '1 second')`,
      [family!.sid],
    );
    await service.app.get(PurgeExpiredJob).run();
    expect(await revocations()).toEqual(['jti lives', 'jti unknown']);
    expect(
      await service.database.query(
        `SELECT revoked_because FROM auth.refresh_family WHERE family_id = $1::uuid AND revoked_at IS NOT NULL`,
        [family!.sid],
      ),
    ).toEqual([{ revoked_because: 'revocation' }]);
  });
});
