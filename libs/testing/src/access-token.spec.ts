import { verify } from 'jsonwebtoken';
import { TEST_TOKEN_CONFIG, testAccessToken } from './index';

const { issuer, audience, hmacKey, hmacKeyId } = TEST_TOKEN_CONFIG;

describe('testAccessToken', () => {
  it('verifies with the test configuration', () => {
    const options = { issuer, audience, algorithms: ['HS256' as const], complete: true as const };
    const { header, payload } = verify(testAccessToken({ personas: 1 }), hmacKey, options);
    expect(header).toEqual({ alg: 'HS256', kid: hmacKeyId, typ: 'at+jwt' });
    expect(payload).toMatchObject({ sub: 'personid:1001', personas: 1, facilities: [501, 502] });
    expect(hmacKey.length).toBeGreaterThanOrEqual(32);
  });

  it('omits claims that are overridden with undefined', () => {
    const payload = Buffer.from(
      testAccessToken({ jti: undefined }).split('.')[1] ?? '',
      'base64url',
    ).toString();
    expect(JSON.parse(payload)).not.toHaveProperty('jti');
  });
});
