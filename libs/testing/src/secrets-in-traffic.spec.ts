import { secretsIn } from './secrets-in-traffic';

const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' };

function found(half: Partial<Parameters<typeof secretsIn>[0]>): Record<string, string> {
  return Object.fromEntries(secretsIn({ headers: {}, body: '', ...half }));
}

describe('the secrets in an HTTP exchange', () => {
  it('are the secret members of JSON, at any depth, strings decoded and numbers as written', () => {
    const body =
      '{"user":"ivy.internal","password":"a \\"quoted\\" one","list":[{"settingValue":12345678901234567890.10}],"code":"NotFound"}';
    expect(found({ headers: JSON_TYPE, body })).toEqual({
      'a "quoted" one': 'password',
      '12345678901234567890.10': 'settingValue',
    });
  });

  it('are also members of invalid JSON, in their raw spelling', () => {
    const body = '{"password":"a raw\ttab","code":"an \\x escape"}';
    expect(found({ url: '/auth/token/code', headers: JSON_TYPE, body })).toMatchObject({
      'a raw\ttab': 'password',
      'an \\x escape': 'code',
    });
  });

  it('are tokens and cookies in headers', () => {
    expect(
      found({
        headers: {
          authorization: 'Bearer the.token.itself',
          cookie: 'a=first-cookie; b=second-cookie',
          'set-cookie': ['c=third-cookie; Path=/; HttpOnly'],
        },
      }),
    ).toEqual({
      'the.token.itself': 'credentials',
      'first-cookie': 'cookie',
      'second-cookie': 'cookie',
      'third-cookie': 'cookie',
    });
  });

  it('are fields of forms, queries and the addresses of redirects', () => {
    expect(
      found({
        url: '/auth/token/bearer?bearerTokenOverride=overriding',
        headers: {
          location: 'http://provider/auth?state=the-state&client_id=auth-service',
          'content-type': 'application/x-www-form-urlencoded',
        },
        body: 'code=the%2Bcode&iss=http%3A%2F%2Fprovider',
      }),
    ).toEqual({ overriding: 'bearerTokenOverride', 'the-state': 'state', 'the+code': 'code' });
  });

  it('are the credentials of applications: in the header, in forms, with codes and verifiers', () => {
    const basic = Buffer.from('demo-backend:the-shared-secret').toString('base64');
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    expect(
      found({
        url: '/auth/introspect',
        headers: { ...form, authorization: `Basic ${basic}` },
        body: 'token=the.token.itself&client_secret=another-secret',
      }),
    ).toEqual({
      [basic]: 'credentials',
      'the-shared-secret': 'client_secret',
      'the.token.itself': 'token',
      'another-secret': 'client_secret',
    });
    const body = JSON.stringify({ applicationKey: 'web', code: 'the-code', codeVerifier: 'the-verifier' });
    expect(found({ url: '/auth/token/code', headers: JSON_TYPE, body })).toEqual({
      'the-code': 'code',
      'the-verifier': 'codeVerifier',
    });
  });

  it('are bare setting values', () => {
    const url = '/platform/v1/subsystems/Tour/settings/limit/value';
    expect(found({ url, headers: JSON_TYPE, body: '1234567890' })).toEqual({ '1234567890': 'settingValue' });
  });

  it('exclude values too short to distinguish from other text', () => {
    expect(found({ headers: JSON_TYPE, body: '{"password":"guess"}' })).toEqual({});
  });
});
