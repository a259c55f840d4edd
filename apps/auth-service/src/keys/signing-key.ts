import { generateKeyPairSync, randomBytes } from 'node:crypto';
import type { JsonWebKey, KeyPairKeyObjectResult } from 'node:crypto';
import type { SecretBox } from './secret-box';

export type AsymmetricAlgorithm = 'ES256' | 'RS256';

export interface NewSigningKey {
  kid: string;
  algorithm: AsymmetricAlgorithm;
  publicJwk: JsonWebKey;
  sealedPrivateKey: Buffer;
}

/** Size of generated RSA keys, in bits. `SIGNATURE_CHARACTERS` relies on it. */
const RSA_MODULUS_BITS = 2_048;

/** Generates a key pair with a random key id. @param box seals the private part */
export function generateSigningKey(algorithm: AsymmetricAlgorithm, box: SecretBox): NewSigningKey {
  const { publicKey, privateKey } = generateKeyPair(algorithm);
  const kid = `${algorithm.toLowerCase()}-${randomBytes(9).toString('base64url')}`;
  const pkcs8 = privateKey.export({ format: 'der', type: 'pkcs8' });
  return {
    kid,
    algorithm,
    publicJwk: publicKey.export({ format: 'jwk' }),
    sealedPrivateKey: box.seal(signingKeyPurpose(kid), pkcs8),
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

/** Returns the purpose that a sealed private key is bound to. */
export function signingKeyPurpose(kid: string): string {
  return `signing-key:${kid}`;
}

/**
 * next → active → retired → removed. `next` is published ahead of use; `retired` still verifies; `removed`
 * does not.
 */
export type SigningKeyState = 'next' | 'active' | 'retired' | 'removed';

/** A change that an administrator can make to an asymmetric key. */
export type SigningKeyChange = 'activate' | 'retire' | 'remove';

/** The properties of a key that decide whether it may be changed. */
export interface ChangeableKey {
  kid: string;
  state: SigningKeyState;
  /** Time since the key entered its state, in seconds, by the database's clock. */
  ageSeconds: number;
}

/**
 * Time that a key is published before it signs, in seconds. Replicas reload keys within 60 s, and validators
 * reload the JWK Set within another 60 s.
 */
export const PUBLICATION_SECONDS = 120;

/** Lifetime of an access token, in seconds: 24 hours. Source: authentication spec, Limits. */
export const ACCESS_TOKEN_LIFETIME_SECONDS = 24 * 60 * 60;

/**
 * Time that a retired key still verifies tokens, in seconds: the lifetime of its last tokens, and one hour
 * for slow replicas and clock skew.
 */
export const RETIREMENT_SECONDS = ACCESS_TOKEN_LIFETIME_SECONDS + 60 * 60;

/**
 * Returns the reason why a change of a key is refused, or null if it is allowed. States only move forward:
 * next → active → retired → removed.
 * @param force skips the waiting times; valid tokens may then be refused for a while
 */
export function keyChangeRefusal(
  key: ChangeableKey,
  change: SigningKeyChange,
  force: boolean,
): string | null {
  switch (change) {
    case 'activate':
      return activationRefusal(key, force);
    case 'retire':
      return retirementRefusal(key, force);
    case 'remove':
      return removalRefusal(key, force);
  }
}

function activationRefusal({ kid, state, ageSeconds }: ChangeableKey, force: boolean): string | null {
  if (state === 'active') return `${kid} is active already`;
  if (state !== 'next') return `${kid} is ${state} and never signs again: generate a new key`;
  if (ageSeconds >= PUBLICATION_SECONDS || force) return null;
  return (
    `${kid} was published only ${Math.floor(ageSeconds)} s ago; validators know it for sure after ${PUBLICATION_SECONDS} s. ` +
    'Wait, or pass --force'
  );
}

function retirementRefusal({ kid, state }: ChangeableKey, force: boolean): string | null {
  if (state === 'next') return `${kid} has never signed: remove it instead`;
  if (state !== 'active') return `${kid} is ${state} already`;
  if (force) return null;
  return `${kid} signs at present and retires by itself when another key is activated; to retire it without a successor pass --force`;
}

function removalRefusal({ kid, state, ageSeconds }: ChangeableKey, force: boolean): string | null {
  if (state === 'removed') return `${kid} is removed already`;
  if (state === 'active') return `${kid} signs at present: activate another key, or retire it, first`;
  if (state === 'next' || ageSeconds >= RETIREMENT_SECONDS || force) return null;
  const hours = Math.ceil((RETIREMENT_SECONDS - ageSeconds) / 3_600);
  return `tokens signed with ${kid} may be valid for up to ${hours} h more; to refuse them from now on pass --force`;
}
