import { eventually } from '@platform/testing';
import request from 'supertest';
import { claimsOf, startAuthService } from './auth-fixture';
import type { AuthFixture } from './auth-fixture';

const WINAUTH = '/auth/token/user/winauth';
const SECRET = 'proxy-secret-for-tests-only-0000000001';

describe('Windows authentication, switched off', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService();
  });
  afterAll(() => service.stop());

  it('is refused as a flow that is not permitted, and names its successor', async () => {
    const { status, body, headers } = await service.get(WINAUTH).set('Authorization', 'Negotiate AAAA');
    expect(status).toBe(401);
    expect(body).toEqual({
      accessToken: null,
      refreshToken: null,
      rejectionReason: 8,
      rejectionDetails: 'Windows authentication is not offered here.',
      wasSuccessful: false,
    });
    expect(headers).toMatchObject({
      'cache-control': 'no-store',
      deprecation: expect.stringMatching(/^@\d+$/),
      link: '</auth/token/sso/initiate>; rel="successor-version"',
    });
    expect(headers['www-authenticate']).toBeUndefined();
  });

  it('trusts no header', async () => {
    const headers = { 'X-Remote-User': 'ivy.internal@CORP.TEST', 'X-Proxy-Secret': SECRET };
    expect((await service.get(WINAUTH).set(headers)).status).toBe(401);
  });
});

describe('Windows authentication by a trusted proxy', () => {
  let service: AuthFixture;
  beforeAll(async () => {
    service = await startAuthService({
      environment: {
        WINDOWS_AUTHENTICATION: 'trusted-header',
        WINDOWS_REALM: 'CORP.TEST',
        WINDOWS_PROXY_USER_HEADER: 'X-Windows-User',
        WINDOWS_PROXY_SECRET_HEADER: 'X-Windows-Proxy',
        WINDOWS_PROXY_SECRET: SECRET,
      },
    });
    await service.database.query(
      `UPDATE internal_legacy.internal_user SET windows_account_key = 'jörg@CORP.TEST' WHERE user_id = 9001`,
    );
  });
  afterAll(() => service.stop());

  const utf8 = (text: string): string => Buffer.from(text).toString('latin1');

  async function outcomeOf(headers: Record<string, string>): Promise<[number, number]> {
    const { status, body } = await service.get(WINAUTH).set(headers);
    return [status, body.rejectionReason as number];
  }

  it('issues a token to the mapped user that the proxy names', async () => {
    const headers = { 'X-Windows-User': utf8('Jörg@CORP.TEST'), 'X-Windows-Proxy': SECRET };
    const { status, body, headers: responseHeaders } = await service.get(WINAUTH).set(headers);
    expect(status).toBe(200);
    expect(claimsOf(body.accessToken)).toMatchObject({ sub: 'userid:9001', personas: 1 });
    expect(body.refreshToken).toBeNull();
    expect(responseHeaders['www-authenticate']).toBeUndefined();
    const audited = await service.database.query(
      'SELECT flow, status, reason, subject FROM auth.token_audit WHERE access_token_id = $1',
      [claimsOf(body.accessToken).jti],
    );
    expect(audited).toEqual([{ flow: 'windows', status: 200, reason: 0, subject: 'userid:9001' }]);
  });

  it('issues a refresh token to an application that may hold one, and refuses one that may not use the flow', async () => {
    const headers = { 'X-Windows-User': utf8('jörg@CORP.TEST'), 'X-Windows-Proxy': SECRET };
    const { body } = await service.get(WINAUTH).set({ ...headers, 'X-Application-Key': 'demo-backend' });
    expect(body.refreshToken).not.toBeNull();
    expect(await outcomeOf({ ...headers, 'X-Application-Key': 'demo-reports' })).toEqual([401, 8]);
    expect(await outcomeOf({ ...headers, 'X-Application-Key': 'nobody' })).toEqual([401, 8]);
  });

  it.each<[string, Record<string, string>]>([
    ['without a secret', {}],
    ['with a wrong secret', { 'X-Windows-Proxy': `${SECRET}x` }],
    ['with a part of the secret', { 'X-Windows-Proxy': SECRET.slice(0, -1) }],
    ['with the secret in another header', { 'X-Proxy-Secret': SECRET }],
  ])('never trusts a name %s', async (_, headers) => {
    expect(await outcomeOf({ 'X-Windows-User': utf8('jörg@CORP.TEST'), ...headers })).toEqual([401, 1]);
  });

  it.each<[string, Record<string, string>]>([
    ['no name', {}],
    ['another realm', { 'X-Windows-User': utf8('jörg@OTHER.TEST') }],
    ['no realm', { 'X-Windows-User': utf8('jörg') }],
    ['two names', { 'X-Windows-User': utf8('jörg@CORP.TEST, eve@CORP.TEST') }],
    ['a name in another encoding', { 'X-Windows-User': 'j\u00f6rg@CORP.TEST' }],
    ['an unmapped account', { 'X-Windows-User': 'ivy.internal@CORP.TEST' }],
    ['a name in the default header', { 'X-Remote-User': utf8('jörg@CORP.TEST') }],
  ])('refuses %s from the proxy', async (_, headers) => {
    expect(await outcomeOf({ 'X-Windows-Proxy': SECRET, ...headers })).toEqual([401, 1]);
  });

  it('starts nothing for a HEAD, and refuses other methods with 405', async () => {
    const headers = { 'X-Windows-User': utf8('jörg@CORP.TEST'), 'X-Windows-Proxy': SECRET };
    /**
     * Sends a refused request, waits for its audit row and returns the counts of audit rows and sessions.
     * Audit rows of refusals are written later, but in order.
     */
    const rowsAfter = async (applicationKey: string): Promise<number[]> => {
      expect(await outcomeOf({ 'X-Application-Key': applicationKey })).toEqual([401, 1]);
      return eventually(async () => {
        const [found] = await service.database.query<{ own: number; audited: number; sessions: number }>(
          `SELECT (SELECT count(*)::int FROM auth.token_audit WHERE application_key = $1) AS own,
             (SELECT count(*)::int FROM auth.token_audit) AS audited,
             (SELECT count(*)::int FROM auth.refresh_family) AS sessions`,
          [applicationKey],
        );
        expect(found?.own).toBe(1);
        return [found!.audited, found!.sessions];
      });
    };
    const [audited, sessions] = await rowsAfter('before-any-head');
    for (const path of [WINAUTH, '/Auth/Token/User/WinAuth/', '/auth/token/user/%77inauth', `${WINAUTH}?x=1`])
      expect(
        (
          await request(service.app.getHttpServer())
            .head(path)
            .set({ ...headers, 'X-Application-Key': 'demo-backend' })
        ).status,
      ).toBe(204);
    // The one additional audit row is that of the refused request that `rowsAfter` sends.
    expect(await rowsAfter('after-all-heads')).toEqual([audited! + 1, sessions]);
    expect((await service.post(WINAUTH, {})).status).toBe(405);
  });
});
