import { createHmac, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { derToJose } from 'ecdsa-sig-formatter';

export type SigningAlgorithm = 'HS256' | 'ES256' | 'RS256';

/** A key with everything that can be prepared ahead of signing. */
export interface SigningKey {
  kid: string;
  algorithm: SigningAlgorithm;
  key: KeyObject;
  /** The encoded JOSE header: the same for every token of this key and type. */
  encodedHeader: string;
}

/** Prepares a key for tokens of one `typ`, e.g. `at+jwt`. */
export function signingKey(
  algorithm: SigningAlgorithm,
  kid: string,
  key: KeyObject,
  typ: string,
): SigningKey {
  return { kid, algorithm, key, encodedHeader: encode(JSON.stringify({ alg: algorithm, kid, typ })) };
}

/** Length in characters of an encoded signature. RS256 depends on the modulus; 2,048 bits are counted. */
export const SIGNATURE_CHARACTERS: Readonly<Record<SigningAlgorithm, number>> = {
  HS256: 43,
  ES256: 86,
  RS256: 342,
};

/**
 * Signs a payload given as JSON text. HS256 and RS256 are deterministic: the same payload gives the same
 * token.
 */
export function signCompact(signer: SigningKey, payloadJson: string): string {
  const signed = `${signer.encodedHeader}.${encode(payloadJson)}`;
  return `${signed}.${signature(signer, signed)}`;
}

function signature({ algorithm, key }: SigningKey, signed: string): string {
  switch (algorithm) {
    case 'HS256':
      return createHmac('sha256', key).update(signed).digest('base64url');
    case 'ES256':
      // JWS wants r and s side by side. node:crypto writes them so, too, but a key with options costs it
      // twice the time of one without.
      return derToJose(sign('sha256', Buffer.from(signed), key), 'ES256');
    case 'RS256':
      // PKCS #1 v1.5 is what an RSA key signs with unless told otherwise.
      return sign('sha256', Buffer.from(signed), key).toString('base64url');
  }
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64url');
}
