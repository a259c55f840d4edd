import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { findLeaks } from '@platform/testing';
import { CLIENT_ADDRESS, audited, newTrace, traceparent, trusted } from './audit-fixture';
import type { AuditRow } from './audit-fixture';
import { BACKEND, PASSWORD, REPORTS, claimsOf, startAuthService, startReplica } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

describe('the audit trail', () => {
  let service: AuthFixture;
  let secondReplica: NestFastifyApplication;
  beforeAll(async () => {
    const environment = { TRUSTED_PROXIES: '127.0.0.1,::1' };
    service = await startAuthService({ environment });
    secondReplica = await startReplica(service.database.url);
  });
  afterAll(async () => {
    await secondReplica.close();
    await service.stop();
  });

  const attempt = (
    path: string,
    body: object | string | undefined,
    { app = service.app, token }: { app?: NestFastifyApplication; token?: string } = {},
  ): ReturnType<typeof audited> => audited(app, service.database, path, body, token);

  it('records the id of every issued token, on every flow', async () => {
    const simple = await attempt('/auth/token/trust-simple', trusted());
    // The row has the time of the request. The upper bound leaves room for a busy machine.
    expect(simple.row.age_seconds).toBeGreaterThanOrEqual(0);
    expect(simple.row.age_seconds).toBeLessThan(20);
    expect(simple.row).toMatchObject({
      flow: 'trust-simple',
      status: 200,
      reason: 0,
      detail: null,
      application_key: 'demo-backend',
      subject: 'personid:1001',
      user_name: 'carl.customer',
      address: CLIENT_ADDRESS,
      access_token_id: claimsOf(simple.answer.body.accessToken!).jti,
    });
    const { refreshToken, accessToken } = simple.answer.body;
    const refreshed = await attempt('/auth/token/refresh', { refreshToken });
    const known = { reason: 0, application_key: 'demo-backend', subject: 'personid:1001', user_name: null };
    expect(refreshed.row).toMatchObject({ ...known, flow: 'refresh' });
    // A retry that gets the same successor again has a row of its own.
    const repeated = await attempt('/auth/token/refresh', { refreshToken }, { app: secondReplica });
    expect(repeated.row).toMatchObject({ ...known, flow: 'refresh' });
    expect(repeated.row.access_token_id).toBe(claimsOf(repeated.answer.body.accessToken!).jti);
    expect(repeated.row.access_token_id).not.toBe(refreshed.row.access_token_id);
    const exchanged = await attempt('/auth/token/bearer', undefined, { token: accessToken! });
    expect(exchanged.row).toMatchObject({ ...known, flow: 'bearer' });
    const login = await attempt('/auth/token/user', { user: 'ivy.internal', password: PASSWORD });
    expect(login.row).toMatchObject({ flow: 'password', subject: 'userid:9001', user_name: 'ivy.internal' });
    expect(login.row.access_token_id).toBe(claimsOf(login.answer.body.accessToken!).jti);
  });

  it('records a token without a refresh token too', async () => {
    const { answer, row } = await attempt('/auth/token/trust-simple', trusted(REPORTS));
    expect([answer.status, answer.body.refreshToken]).toEqual([200, null]);
    expect(row).toMatchObject({ reason: 0, application_key: 'demo-reports', subject: 'personid:1001' });
  });

  it.each<[string, string, object | string, Partial<AuditRow>]>([
    [
      'a wrong secret',
      'trust-simple',
      trusted({ sharedSecret: 'wrong' }),
      {
        flow: 'trust-simple',
        reason: 1,
        detail: 'wrong secret',
        application_key: 'demo-backend',
        subject: null,
      },
    ],
    [
      'an unknown user of a proven application',
      'trust-simple',
      trusted({ userName: 'nobody' }),
      { status: 422, reason: 1, detail: 'absent', user_name: 'nobody' },
    ],
    [
      'a wrong password',
      'user',
      { user: 'carl.customer', password: 'wrong' },
      { flow: 'password', status: 401, reason: 1, user_name: 'carl.customer', subject: null },
    ],
    [
      'an invalid request',
      'user',
      { user: 'x'.repeat(300), password: 'y' },
      { status: 400, reason: 7, user_name: 'x'.repeat(64) },
    ],
    [
      'control characters in a name',
      'user',
      { user: 'a\u0000\nb', password: 'y' },
      { status: 400, reason: 7, user_name: 'a\ufffd\ufffdb' },
    ],
    [
      'an unreadable body',
      'trust',
      '{"userName":',
      { flow: 'trust', status: 400, reason: 7, user_name: null },
    ],
    [
      'an invalid code',
      'code',
      { applicationKey: 'demo-backend', code: 'x', codeVerifier: 'v'.repeat(43) },
      { flow: 'code', status: 401, reason: 1, application_key: 'demo-backend' },
    ],
    ['an invalid refresh token', 'refresh', { refreshToken: 'x' }, { status: 401, reason: 4 }],
  ])('records %s', async (_, path, body, expected) => {
    const { row } = await attempt(`/auth/token/${path}`, body);
    expect(row).toMatchObject({ address: CLIENT_ADDRESS, access_token_id: null, ...expected });
  });

  it('records the subject of a refused token', async () => {
    const { body } = await service.post('/auth/token/trust-simple', trusted());
    const { row } = await attempt('/auth/token/bearer', undefined, { token: 'rubbish' });
    expect(row).toMatchObject({ flow: 'bearer', status: 401, reason: 2, subject: null });
    await service.database.query(
      `UPDATE auth.application SET allow_refresh = false WHERE application_key = 'demo-backend'`,
    );
    const refused = await attempt('/auth/token/refresh', { refreshToken: body.refreshToken as string });
    await service.database.query(
      `UPDATE auth.application SET allow_refresh = true WHERE application_key = 'demo-backend'`,
    );
    expect(refused.row).toMatchObject({
      status: 422,
      reason: 8,
      application_key: 'demo-backend',
      subject: 'personid:1001',
    });
  });

  it('trusts X-Forwarded-For only from a trusted proxy', async () => {
    const { row } = await attempt('/auth/token/trust-simple', trusted(), { app: secondReplica });
    expect(row.address).toMatch(/^(127\.0\.0\.1|::1)$/);
  });

  it('records revocations with caller, target and address, and sessions ended by token reuse', async () => {
    const { body } = await service.post('/auth/token/trust-simple', trusted());
    const traceId = newTrace();
    await service
      .put('/auth/revocations/token/Some-Token', body.accessToken as string)
      .set('traceparent', traceparent(traceId))
      .set('X-Forwarded-For', '2001:db8::7')
      .expect(200);
    const rows = await service.database.query(
      `SELECT domain, identifier, because, revoked_by_subject, revoked_by_client, host(address) AS address
       FROM auth.revocation_audit WHERE trace_id = $1`,
      [traceId],
    );
    expect(rows).toEqual([
      {
        domain: 'jti',
        identifier: 'Some-Token',
        because: 'request',
        revoked_by_subject: 'personid:1001',
        revoked_by_client: 'demo-backend',
        address: '2001:db8::7',
      },
    ]);
    const { refreshToken } = body as { refreshToken: string };
    await service.post('/auth/token/refresh', { refreshToken });
    const { jti } = claimsOf(refreshToken);
    await service.database.query(
      `UPDATE auth.refresh_token SET rotated_at = now() - interval '1 minute', rotated_in = NULL WHERE jti = $1`,
      [jti],
    );
    const reused = await attempt('/auth/token/refresh', { refreshToken });
    expect(reused.row).toMatchObject({ reason: 6, detail: 'reused', subject: 'personid:1001' });
    await attempt('/auth/token/refresh', { refreshToken }, { app: secondReplica });
    const ended = await service.database.query(
      `SELECT domain, because, revoked_by_subject FROM auth.revocation_audit
       WHERE identifier = (SELECT family_id::text FROM auth.refresh_token WHERE jti = $1)`,
      [jti],
    );
    expect(ended).toEqual([
      { domain: 'refresh-family', because: 'reuse', revoked_by_subject: 'personid:1001' },
    ]);
  });

  it('contains none of the secrets that were sent', async () => {
    const dump = JSON.stringify([
      await service.database.query('SELECT * FROM auth.token_audit'),
      await service.database.query('SELECT * FROM auth.revocation_audit'),
    ]);
    expect(dump).toContain('carl.customer');
    const sent = new Map([
      [PASSWORD, 'password'],
      [BACKEND.sharedSecret, 'shared secret'],
    ]);
    expect(findLeaks(sent, new Map([['the audit', dump]]))).toEqual([]);
    expect(dump).not.toContain('eyJ');
  });
});
