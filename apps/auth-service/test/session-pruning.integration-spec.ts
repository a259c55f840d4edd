import { createTestDatabase } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { BoundSessionsJob } from '../src/token/bound-sessions.job';
import {
  BACKEND,
  claimsOf,
  expectOutcome,
  migrateWithIdentities,
  postTo,
  refreshTokenOf,
  startReplica,
} from './auth-fixture';

const PER_HOUR = 3;

describe('refresh tokens of a session that are used long after their issue', () => {
  let database: TestDatabase;
  let replica: NestFastifyApplication;
  beforeAll(async () => {
    database = await createTestDatabase({ migrate: migrateWithIdentities });
    const environment = { REFRESH_TOKENS_PER_HOUR: String(PER_HOUR) };
    replica = await startReplica(database.url, { environment });
  });
  afterAll(async () => {
    await replica.close();
    await database.drop();
  });

  const tokensOf = async (sid: string): Promise<number> => {
    const sql = 'SELECT count(*)::int AS tokens FROM auth.refresh_token WHERE family_id = $1';
    const [row] = await database.query<{ tokens: number }>(sql, [sid]);
    return row!.tokens;
  };
  const refresh = async (refreshToken: string): Promise<string> => {
    const { status, body } = await postTo(replica, '/auth/token/refresh', { refreshToken });
    expect(status).toBe(200);
    return (body as { refreshToken: string }).refreshToken;
  };
  const signIn = async (): Promise<{ sid: string; refreshToken: string }> => {
    const person = { persona: 2, userName: 'carl.customer' };
    const { body } = await postTo(replica, '/auth/token/trust-simple', { ...BACKEND, ...person });
    const { refreshToken } = body as { refreshToken: string };
    return { sid: String(claimsOf(refreshToken).sid), refreshToken };
  };
  /** Adds unused tokens to a session, like those of exchanges. They were issued two hours ago. */
  const saveUp = async (sid: string, count: number): Promise<string[]> => {
    const rows = await database.query<{ jti: string; issuedAt: Date; expiresAt: Date }>(
      `INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at)
       SELECT gen_random_uuid(), $1, date_trunc('second', now()) - interval '2 hours', now() + interval '300 days'
       FROM generate_series(1, $2::integer) RETURNING jti, issued_at AS "issuedAt", expires_at AS "expiresAt"`,
      [sid, count],
    );
    const common = { sessionId: sid, subject: 'personid:1001', clientId: BACKEND.applicationKey };
    return rows.map((row) => refreshTokenOf(replica, { ...row, ...common }));
  };

  it('do not count towards the hourly limit, but are refused like the others once it is reached', async () => {
    const { sid, refreshToken } = await signIn();
    const [waiting, ...saved] = await saveUp(sid, 3);
    const successors: string[] = [];
    for (const token of saved) successors.push(await refresh(token));
    let newest = refreshToken;
    for (let turn = 0; turn < PER_HOUR; turn += 1) newest = await refresh(newest);
    for (const token of [newest, waiting!, ...successors]) {
      const sent = postTo(replica, '/auth/token/refresh', { refreshToken: token });
      await expectOutcome(sent, { status: 429, reason: 7 });
    }
  });

  it('are pruned even if the job skipped them while they were unused', async () => {
    const { sid, refreshToken } = await signIn();
    await database.query(
      `INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at)
       SELECT gen_random_uuid(), $1, now() - interval '2 hours' - n * interval '1 s', now() + interval '300 days'
       FROM generate_series(1, 300) AS n`,
      [sid],
    );
    const next = await refresh(refreshToken);
    await replica.get(BoundSessionsJob).run();
    expect(await tokensOf(sid)).toBe(302);
    await database.query(
      `UPDATE auth.refresh_token SET rotated_at = now() - interval '10 minutes', successor_jti = gen_random_uuid(), rotated_in = 3
       WHERE family_id = $1 AND issued_at < now() - interval '1 hour'`,
      [sid],
    );
    await refresh(next);
    await replica.get(BoundSessionsJob).run();
    expect(await tokensOf(sid)).toBe(100);
  });
});
