import type { JsonWebKey } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { testsThatMayNeed } from '@platform/testing';
import { fixedClock } from '@platform/time';
import { createVerificationKey, KeyRing } from '../keys/keys';
import type { VerificationKey } from '../keys/keys';
import { parseToken } from '../token/parse-token';
import type { SigningAlgorithm } from '../token/parse-token';
import { AccessTokenVerifier } from './access-token-verifier';

/**
 * Test vectors of the IETF. They are not part of this repository; the tests run if the file exists next to
 * the checkout.
 */
const VECTORS = join(__dirname, '../../../../../shared/vectors/rfc7515/appendix-a.json');

interface Vector {
  id: string;
  alg: SigningAlgorithm;
  jwk: JsonWebKey;
  jws: string;
}

function keyOf({ alg, jwk }: Vector): VerificationKey {
  return alg === 'HS256'
    ? createVerificationKey({ alg, secret: Buffer.from(jwk.k ?? '', 'base64url') })
    : createVerificationKey({ alg, publicKey: jwk });
}

function verifierOf(key: VerificationKey): AccessTokenVerifier {
  const clock = fixedClock('2011-03-22T18:00:00Z');
  return new AccessTokenVerifier({
    issuer: 'joe',
    audience: '',
    keys: new KeyRing([key]),
    revocations: { isRevoked: () => false },
    clock,
  });
}

function checkSignature(key: VerificationKey, jws: string): void {
  const rest = { audience: '', legacy: false, generation: null };
  verifierOf(key).checkSignature({ parsed: parseToken(jws), key, ...rest });
}

const { describe: describeWithVectors } = testsThatMayNeed(
  'RFC 7515 appendix A',
  existsSync(VECTORS) ? null : `${VECTORS} is absent`,
);

describeWithVectors('tokens of RFC 7515, appendix A', () => {
  let vectors: Vector[];
  beforeAll(() => {
    ({ vectors } = JSON.parse(readFileSync(VECTORS, 'utf8')) as { vectors: Vector[] });
    expect(vectors.map(({ alg }) => alg)).toEqual(expect.arrayContaining(['HS256', 'ES256']));
  });

  it('have a valid signature', () => {
    for (const vector of vectors) expect(() => checkSignature(keyOf(vector), vector.jws)).not.toThrow();
  });

  it('have an invalid signature after a change to payload or signature', () => {
    for (const vector of vectors) {
      const [head, body, signature] = vector.jws.split('.') as [string, string, string];
      const flip = (text: string): string => (text.startsWith('e') ? 'f' : 'e') + text.slice(1);
      const otherBody = Buffer.from(JSON.stringify({ iss: 'joe' })).toString('base64url');
      for (const changed of [`${head}.${body}.${flip(signature)}`, `${head}.${otherBody}.${signature}`])
        expect(() => checkSignature(keyOf(vector), changed)).toThrow('bad-signature');
    }
  });

  it('are still refused as access tokens, because of their type', async () => {
    for (const vector of vectors)
      await expect(verifierOf(keyOf(vector)).verify(vector.jws)).rejects.toMatchObject({
        reason: 'wrong-type',
      });
  });
});
