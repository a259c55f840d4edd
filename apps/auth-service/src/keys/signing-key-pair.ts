import { generateKeyPairSync, randomBytes } from 'node:crypto';
import type { JsonWebKey, KeyPairKeyObjectResult } from 'node:crypto';
import { sealSecret } from './secret-box';

export type AsymmetricAlgorithm = 'ES256' | 'RS256';

/** A new key as it is stored. */
export interface NewSigningKey {
  kid: string;
  algorithm: AsymmetricAlgorithm;
  publicJwk: JsonWebKey;
  sealedPrivateKey: Buffer;
}

/** The size that `SIGNATURE_CHARACTERS` of RS256 counts on. */
const RSA_MODULUS_BITS = 2_048;

/** Makes a key pair with a random key id. @param encryptionKey seals the private part; AES-256-GCM, 32 bytes */
export function generateSigningKey(algorithm: AsymmetricAlgorithm, encryptionKey: Buffer): NewSigningKey {
  const { publicKey, privateKey } = generateKeyPair(algorithm);
  const kid = `${algorithm.toLowerCase()}-${randomBytes(9).toString('base64url')}`;
  const pkcs8 = privateKey.export({ format: 'der', type: 'pkcs8' });
  return {
    kid,
    algorithm,
    publicJwk: publicKey.export({ format: 'jwk' }),
    sealedPrivateKey: sealSecret(encryptionKey, signingKeyPurpose(kid), pkcs8),
  };
}

function generateKeyPair(algorithm: AsymmetricAlgorithm): KeyPairKeyObjectResult {
  switch (algorithm) {
    case 'ES256':
      return generateKeyPairSync('ec', { namedCurve: 'P-256' });
    case 'RS256':
      return generateKeyPairSync('rsa', { modulusLength: RSA_MODULUS_BITS });
  }
}

/** What a sealed private key is bound to. */
export function signingKeyPurpose(kid: string): string {
  return `signing-key:${kid}`;
}
