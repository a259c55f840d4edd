import { KeyObject, createPublicKey, createSecretKey } from 'node:crypto';
import type { JsonWebKey } from 'node:crypto';
import { KEY_ID_PATTERN } from '../token/parse-token';
import type { SigningAlgorithm } from '../token/parse-token';

const MIN_HMAC_KEY_BYTES = 32;
const MIN_RSA_MODULUS_BITS = 2_048;

/** A key that verifies signatures: imported once, bound to one algorithm and one issuer. */
export interface VerificationKey {
  /** Tokens name it by this; a key without one verifies only tokens without one. */
  readonly kid: string | undefined;
  readonly alg: SigningAlgorithm;
  /** Whose tokens it verifies; undefined: the platform's own issuer. */
  readonly issuer: string | undefined;
  readonly key: KeyObject;
}

/** A key as configuration holds it. HS256 takes a secret; RS256 and ES256 take a public key, as PEM, JWK or imported. */
export type KeyMaterial = { kid?: string; issuer?: string } & (
  { alg: 'HS256'; secret: Buffer } | { alg: 'RS256' | 'ES256'; publicKey: string | JsonWebKey | KeyObject }
);

/**
 * Imports a key and checks that it fits its algorithm.
 * @throws {RangeError} for an HMAC key under 32 bytes, an RSA modulus under 2,048 bits, another curve than P-256, a key
 *   of another kind than the algorithm's, or a `kid` that no token may carry. The message holds no key material.
 */
export function createVerificationKey(material: KeyMaterial): VerificationKey {
  const { kid, alg, issuer } = material;
  if (kid !== undefined && !KEY_ID_PATTERN.test(kid))
    throw new RangeError('key id must match [A-Za-z0-9_.-]{1,64}');
  return {
    kid,
    alg,
    issuer,
    key: alg === 'HS256' ? secretKey(material.secret) : publicKey(alg, material.publicKey),
  };
}

function secretKey(secret: Buffer): KeyObject {
  if (secret.length < MIN_HMAC_KEY_BYTES) {
    throw new RangeError(`an HMAC key needs at least ${MIN_HMAC_KEY_BYTES} bytes`);
  }
  return createSecretKey(secret);
}

function publicKey(alg: 'RS256' | 'ES256', material: string | JsonWebKey | KeyObject): KeyObject {
  const key = importPublicKey(material);
  const details = key.asymmetricKeyDetails;
  if (alg === 'RS256') {
    if (key.asymmetricKeyType !== 'rsa' || (details?.modulusLength ?? 0) < MIN_RSA_MODULUS_BITS) {
      throw new RangeError(`RS256 needs an RSA key of at least ${MIN_RSA_MODULUS_BITS} bits`);
    }
  } else if (key.asymmetricKeyType !== 'ec' || details?.namedCurve !== 'prime256v1') {
    throw new RangeError('ES256 needs a key on the curve P-256');
  }
  return key;
}

function importPublicKey(material: string | JsonWebKey | KeyObject): KeyObject {
  if (material instanceof KeyObject) return material.type === 'public' ? material : createPublicKey(material);
  return typeof material === 'string'
    ? createPublicKey(material)
    : createPublicKey({ key: material, format: 'jwk' });
}
