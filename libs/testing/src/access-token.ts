import { createHmac, randomUUID } from 'node:crypto';
import { Persona } from '@platform/personas';
import { SYSTEM_CLOCK } from '@platform/time';

/** Issuer, audience and key of `testAccessToken`. Configure the service under test with them. */
export const TEST_TOKEN_CONFIG = {
  issuer: 'https://auth.platform.test',
  audience: 'platform-test',
  hmacKey: Buffer.from('platform-test-access-token-key-0001'),
  hmacKeyId: 'test-1',
} as const;

/** Claims to replace (undefined removes a claim). `header` holds header members to replace. */
export interface TestTokenOverrides {
  [claim: string]: unknown;
  header?: Record<string, unknown>;
}

const LIFETIME_SECONDS = 24 * 60 * 60;

/**
 * Returns an access token like those of auth-service, by default for person 1001, a Customer with facilities
 * 501 and 502.
 */
export function testAccessToken({ header, ...claims }: TestTokenOverrides = {}): string {
  const nowSeconds = Math.floor(SYSTEM_CLOCK.now().getTime() / 1_000);
  const payload = {
    iss: TEST_TOKEN_CONFIG.issuer,
    aud: TEST_TOKEN_CONFIG.audience,
    sub: 'personid:1001',
    jti: randomUUID(),
    sid: randomUUID(),
    iat: nowSeconds,
    nbf: nowSeconds,
    exp: nowSeconds + LIFETIME_SECONDS,
    client_id: 'demo-backend',
    auth_time: nowSeconds,
    identityType: 'svc-personid',
    personId: 1001,
    name: 'Carl Customer',
    personas: Persona.Customer,
    roles: [],
    facilities: [501, 502],
    groups: [],
    ...claims,
  };
  const head = { alg: 'HS256', kid: TEST_TOKEN_CONFIG.hmacKeyId, typ: 'at+jwt', ...header };
  const signed = `${encode(head)}.${encode(payload)}`;
  const signature = createHmac('sha256', TEST_TOKEN_CONFIG.hmacKey).update(signed).digest('base64url');
  return `${signed}.${signature}`;
}

/** Returns an Authorization header with a `testAccessToken` of these claims. */
export function bearer(claims: TestTokenOverrides): { authorization: string } {
  return { authorization: `Bearer ${testAccessToken(claims)}` };
}

function encode(part: object): string {
  return Buffer.from(JSON.stringify(part)).toString('base64url');
}
