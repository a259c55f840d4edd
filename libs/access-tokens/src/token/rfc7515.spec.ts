import type { JsonWebKey } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fixedClock } from '@platform/time';
import { createVerificationKey, KeyRing } from '../keys/keys';
import type { VerificationKey } from '../keys/keys';
import { AccessTokenVerifier } from './access-token-verifier';
import { parseToken } from './parse-token';
import type { SigningAlgorithm } from './parse-token';

/** Published by the IETF, not ours to keep here: read from beside the checkout where they are. */
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

if (existsSync(VECTORS)) {
  const { vectors } = JSON.parse(readFileSync(VECTORS, 'utf8')) as { vectors: Vector[] };

  describe.each(vectors.map((vector) => [vector.id, vector] as const))(
    'RFC 7515 appendix %s',
    (_id, vector) => {
      it('has a good signature', () => {
        expect(() => checkSignature(keyOf(vector), vector.jws)).not.toThrow();
      });

      it('has a bad one once a bit of its payload or signature changed', () => {
        const [head, body, signature] = vector.jws.split('.') as [string, string, string];
        const flip = (text: string): string => (text.startsWith('e') ? 'f' : 'e') + text.slice(1);
        expect(() => checkSignature(keyOf(vector), `${head}.${body}.${flip(signature)}`)).toThrow(
          'bad-signature',
        );
        const otherBody = Buffer.from(JSON.stringify({ iss: 'joe' })).toString('base64url');
        expect(() => checkSignature(keyOf(vector), `${head}.${otherBody}.${signature}`)).toThrow(
          'bad-signature',
        );
      });

      it('is no access token of ours all the same', async () => {
        await expect(verifierOf(keyOf(vector)).verify(vector.jws)).rejects.toMatchObject({
          reason: 'wrong-type',
        });
      });
    },
  );
} else {
  describe('RFC 7515 appendix A', () => {
    it('is NOT compared here: the vectors are absent', () => {
      process.stderr.write(`RFC 7515 vectors are absent, nothing was compared: ${VECTORS}\n`);
    });
  });
}
