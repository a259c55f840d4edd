import {
  PASSWORD,
  agentOf,
  bearerOf,
  claimsOf,
  expectOutcome,
  postTo,
  startAuthService,
} from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

interface Tokens {
  accessToken: string;
  refreshToken: string;
}

describe('after the database’s clock was set back by 20 s', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService();
  });
  afterAll(() => service.stop());

  const signIn = async (user: string): Promise<Tokens> => {
    const { status, body } = await postTo(service.app, '/auth/token/user', { user, password: PASSWORD });
    expect(status).toBe(200);
    return body as Tokens;
  };
  const newestIssue = async (): Promise<number> => {
    const [row] = await service.database.query<{ second: number }>(
      'SELECT last_value::float8 AS second FROM auth.newest_issue',
    );
    return row!.second;
  };

  it('a revocation covers the tokens issued before the change', async () => {
    const admin = await signIn('ivy.internal');
    const { accessToken, refreshToken } = await signIn('rita.resident');
    const { iat, sid } = claimsOf(accessToken);
    expect(await newestIssue()).toBe(iat);
    // Simulates tokens issued while the clock was 20 s ahead.
    await service.database.query(
      `UPDATE auth.refresh_token SET issued_at = issued_at + interval '20 seconds' WHERE family_id = $1::uuid`,
      [sid],
    );
    await service.database.query(`SELECT setval('auth.newest_issue', $1::bigint)`, [Number(iat) + 20]);

    const revocation = agentOf(service.app).put('/auth/revocations/svc-personid/1003');
    await bearerOf(revocation, admin.accessToken).expect(200);
    await expectOutcome(postTo(service.app, '/auth/token/refresh', { refreshToken }), {
      status: 401,
      reason: 6,
    });
  });
});
