import {
  accessRefusal,
  AccessTokenError,
  bearerToken,
  TokenVerificationUnavailableError,
} from './access-token-error';

describe('the token of an Authorization header', () => {
  it.each([
    ['Bearer abc', 'abc'],
    ['bearer  abc', 'abc'],
    ['BEARER a.b-c_d', 'a.b-c_d'],
    ['Bearer', null],
    ['Bearer ', null],
    ['Bearerabc', null],
    ['Bearer abc def', null],
    ['Bearer abc ', null],
    ['x Bearer abc', null],
    ['Basic abc', null],
    ['', null],
    [undefined, null],
  ])('of %j is %j', (header, token) => {
    expect(bearerToken(header)).toBe(token);
  });
});

describe('a refusal', () => {
  it('requests a token, without an error code, if none was sent', () => {
    expect(accessRefusal(new AccessTokenError('missing'))).toEqual({
      status: 401,
      detail: 'A bearer token is required.',
      headers: { 'WWW-Authenticate': 'Bearer' },
    });
  });

  it.each([
    ['expired', 'The access token expired.'],
    ['revoked', 'The access token was revoked.'],
    ['bad-signature', 'The access token is not valid.'],
    ['unknown-key', 'The access token is not valid.'],
  ] as const)('for the reason %s says only "%s"', (reason, detail) => {
    expect(accessRefusal(new AccessTokenError(reason))).toEqual({
      status: 401,
      detail,
      headers: { 'WWW-Authenticate': `Bearer error="invalid_token", error_description="${detail}"` },
    });
  });

  it('is a 503 while keys or revocations are unavailable', () => {
    expect(accessRefusal(new TokenVerificationUnavailableError('keys'))).toEqual({
      status: 503,
      detail: 'Access tokens cannot be verified at the moment.',
      headers: { 'Retry-After': '1' },
    });
  });

  it('is null for any other error', () => {
    expect(accessRefusal(new Error('missing'))).toBeNull();
    expect(accessRefusal(null)).toBeNull();
  });
});
