import { DataSource } from 'typeorm';
import { TokenAuditRepository } from '../src/audit/token-audit.repository';
import { AUTH_CONFIG } from '../src/config';
import { PurgeExpiredJob } from '../src/token/purge-expired.job';
import { startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

describe('what has expired is purged', () => {
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

  it('a session goes with its last token, and stays as long as one lives or expired within a day', async () => {
    await openFamily('ended', [-400, -2, -1.1]);
    await openFamily('lives', [-400, -2, 1]);
    await openFamily('ended just now', [-0.5]);
    await service.app.get(PurgeExpiredJob).run();
    expect(await tokensOf('ended')).toBeNull();
    expect(await tokensOf('lives')).toBe(1);
    expect(await tokensOf('ended just now')).toBe(1);
  });

  it('only while the service runs: a backlog does not hold up its end', async () => {
    await openFamily('expired as the service stopped', [-400]);
    const { app } = service;
    const job = new PurgeExpiredJob(app.get(DataSource), app.get(TokenAuditRepository), app.get(AUTH_CONFIG));
    await job.onApplicationShutdown();
    await job.run();
    expect(await tokensOf('expired as the service stopped')).toBe(1);
  });

  it('revocations of tokens go after 366 days, those of users stay', async () => {
    await service.database.query(
      `INSERT INTO auth.revocation (domain, identifier, revocation_date, revoked_by_subject)
       SELECT domain, days::text, now() - days * interval '1 day', 's'
       FROM unnest(ARRAY['jti', 'sid', 'svc-personid', 'internal-legacy']) AS domain, unnest(ARRAY[365, 367]) AS days`,
    );
    await service.app.get(PurgeExpiredJob).run();
    const kept = await service.database.query(
      `SELECT domain || ' ' || identifier AS name FROM auth.revocation WHERE revoked_by_subject = 's' ORDER BY 1`,
    );
    expect(kept.map(({ name }) => name)).toEqual([
      'internal-legacy 365',
      'internal-legacy 367',
      'jti 365',
      'sid 365',
      'svc-personid 365',
      'svc-personid 367',
    ]);
  });
});
