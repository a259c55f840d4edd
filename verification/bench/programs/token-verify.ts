/**
 * Measures the access-token verifier, called as by the guard, and jsonwebtoken's verify, on the same tokens.
 */
import { generateKeyPairSync, randomUUID, type KeyObject } from 'node:crypto';
import { AccessTokenVerifier, staticKeys } from '@platform/access-tokens';
import jsonwebtoken from 'jsonwebtoken';
import { callsPerSecond, serveMeasurements, type Measurement } from './serve-measurements';

const ISSUER = 'https://auth.bench';
const AUDIENCE = 'bench';
/** Number of callers, each with its own token. They call in turn. */
const TOKENS = 1_000;

interface Pair {
  publicKey: KeyObject;
  privateKey: KeyObject;
}

const PAIRS: Readonly<Record<'ES256' | 'RS256', Pair>> = {
  ES256: generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  RS256: generateKeyPairSync('rsa', { modulusLength: 2_048 }),
};

function makeToken(alg: 'ES256' | 'RS256', personId: number): string {
  const now = Math.floor(Date.now() / 1_000);
  const claims = {
    iss: ISSUER,
    aud: AUDIENCE,
    sub: `personid:${personId}`,
    jti: randomUUID(),
    iat: now,
    nbf: now,
    exp: now + 86_400,
    client_id: 'bench',
    auth_time: now,
    identityType: 'svc-personid',
    personId,
    name: 'Carl Customer',
    personas: 2,
    roles: [],
    facilities: [501, 502],
    groups: [],
  };
  const header = { alg, kid: alg, typ: 'at+jwt' };
  return jsonwebtoken.sign(claims, PAIRS[alg].privateKey, { algorithm: alg, header });
}

function measurementsOf(alg: 'ES256' | 'RS256'): Record<string, Measurement> {
  const { publicKey } = PAIRS[alg];
  const tokens = Array.from({ length: TOKENS }, (_none, index) => makeToken(alg, index + 1));
  const keys = staticKeys([{ kid: alg, alg, publicKey }]);
  const verifier = new AccessTokenVerifier({
    issuer: ISSUER,
    audience: AUDIENCE,
    keys,
    revocations: { isRevoked: () => false },
  });
  const verify = async (token: string): Promise<unknown> =>
    verifier.recall(token) ?? (await verifier.verify(token));
  const rules = { algorithms: [alg], issuer: ISSUER, audience: AUDIENCE } as const;
  return {
    [`guard ${alg}`]: (seconds) => callsPerSecond(seconds, (count) => verify(tokens[count % TOKENS]!)),
    [`jsonwebtoken ${alg}`]: (seconds) =>
      callsPerSecond(
        seconds,
        (count) =>
          void jsonwebtoken.verify(tokens[count % TOKENS]!, publicKey, { ...rules, algorithms: [alg] }),
        50,
      ),
  };
}

serveMeasurements({ ...measurementsOf('ES256'), ...measurementsOf('RS256') });
