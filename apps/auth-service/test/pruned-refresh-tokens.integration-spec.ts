import { createTestDatabase } from '@platform/testing';
import type { TestDatabase } from '@platform/testing';
import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { BoundSessionsJob } from '../src/token/bound-sessions.job';
import { signRefreshToken } from '../src/token/token-claims';
import type { RefreshTokenClaims } from '../src/token/token-claims';
import { TokenKeyring } from '../src/token/token-keyring.service';
import { audited, trusted } from './audit-fixture';
import {
  BACKEND,
  agentOf,
  bearerOf,
  claimsOf,
  expectOutcome,
  migrateWithIdentities,
  postTo,
  refreshTokenOf,
  startReplica,
} from './auth-fixture';

interface Session {
  sid: string;
  accessToken: string;
  /** The newest refresh token. */
  refreshToken: string;
  /** A used refresh token whose row was pruned. */
  pruned: string;
}

describe('a refresh token that was used and pruned', () => {
  let database: TestDatabase;
  let replica: NestFastifyApplication;
  beforeAll(async () => {
    database = await createTestDatabase({ migrate: migrateWithIdentities });
    const environment = { REVOCATION_WRITE_POLICY: 'self-or-admin' };
    replica = await startReplica(database.url, { environment });
  });
  afterAll(async () => {
    await replica.close();
    await database.drop();
  });

  const refresh = async (refreshToken: string): Promise<string> => {
    const { status, body } = await postTo(replica, '/auth/token/refresh', { refreshToken });
    expect(status).toBe(200);
    return (body as { refreshToken: string }).refreshToken;
  };
  const rowsOf = (token: string): Promise<object[]> =>
    database.query('SELECT FROM auth.refresh_token WHERE jti = $1', [claimsOf(token).jti]);

  async function openPruned(): Promise<Session> {
    const { body } = await postTo(replica, '/auth/token/trust-simple', trusted());
    const { accessToken, refreshToken } = body as Session;
    const sid = String(claimsOf(refreshToken).sid);
    const [used] = await database.query<{ jti: string; issuedAt: Date; expiresAt: Date }>(
      `INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at, rotated_at, successor_jti, rotated_in)
       SELECT gen_random_uuid(), $1, at, at + interval '365 days', at + interval '1 second', gen_random_uuid(), 3
       FROM generate_series(1, 300) AS n,
         LATERAL (SELECT date_trunc('second', now()) - interval '2 days' + n * interval '1 second' AS at) AS issued
       RETURNING jti, issued_at AS "issuedAt", expires_at AS "expiresAt"`,
      [sid],
    );
    const { applicationKey: clientId } = BACKEND;
    const token = { ...used!, sessionId: sid, subject: 'personid:1001', clientId };
    const pruned = refreshTokenOf(replica, token);
    const next = await refresh(refreshToken);
    await replica.get(BoundSessionsJob).run();
    expect(await rowsOf(pruned)).toHaveLength(0);
    return { sid, accessToken, refreshToken: next, pruned };
  }

  it('ends its session when presented again: refused as revoked, audited as reuse', async () => {
    const { sid, refreshToken, pruned } = await openPruned();
    const { answer, row } = await audited(replica, database, '/auth/token/refresh', {
      refreshToken: pruned,
    });
    expect(answer).toMatchObject({ status: 401, body: { rejectionReason: 6 } });
    expect(row).toMatchObject({
      flow: 'refresh',
      reason: 6,
      application_key: 'demo-backend',
      subject: 'personid:1001',
    });
    expect(row.detail).toContain('reused');
    const endings = await database.query(
      `SELECT domain, because, revoked_by_client AS client FROM auth.revocation_audit WHERE identifier = $1`,
      [sid],
    );
    expect(endings).toEqual([{ domain: 'refresh-family', because: 'reuse', client: 'demo-backend' }]);
    const sent = postTo(replica, '/auth/token/refresh', { refreshToken });
    await expectOutcome(sent, { status: 401, reason: 6 });
  });

  it('is inactive to introspection, which does not end the session', async () => {
    const { refreshToken, pruned } = await openPruned();
    const { body } = await agentOf(replica)
      .post('/auth/introspect')
      .type('form')
      .auth(BACKEND.applicationKey, BACKEND.sharedSecret)
      .send({ token: pruned });
    expect(body).toEqual({ active: false });
    await refresh(refreshToken);
  });

  it('without the claim `sid` is unknown, and does not end the session', async () => {
    const { refreshToken, pruned } = await openPruned();
    const { sid: _, ...older } = claimsOf(pruned);
    const { refresh: key } = replica.get(TokenKeyring).keys();
    const unnamed = signRefreshToken(key, older as unknown as RefreshTokenClaims);
    const sent = postTo(replica, '/auth/token/refresh', { refreshToken: unnamed });
    await expectOutcome(sent, { status: 401, reason: 4 });
    await refresh(refreshToken);
  });

  it('can no longer be revoked by its user under self-or-admin, but its `sid` can', async () => {
    const { sid, accessToken, refreshToken, pruned } = await openPruned();
    const revoke = async (key: string): Promise<number> =>
      (await bearerOf(agentOf(replica).put(`/auth/revocations/${key}`), accessToken)).status;
    expect(await revoke(`jti/${String(claimsOf(pruned).jti)}`)).toBe(403);
    await refresh(refreshToken);
    expect(await revoke(`sid/${sid}`)).toBe(200);
    const sent = postTo(replica, '/auth/token/refresh', { refreshToken });
    await expectOutcome(sent, { status: 401, reason: 6 });
  });
});
