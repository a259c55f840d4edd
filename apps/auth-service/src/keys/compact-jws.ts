import { createHmac, sign } from 'node:crypto';
import type { KeyObject } from 'node:crypto';
import { derToJose } from 'ecdsa-sig-formatter';

export type SigningAlgorithm = 'HS256' | 'ES256' | 'RS256';

/** A key prepared for signing tokens of one `typ`. */
export interface SigningKey {
  kid: string;
  algorithm: SigningAlgorithm;
  key: KeyObject;
  /** The encoded JOSE header, which is the same for every token of this key and `typ`. */
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

/** Length of an encoded signature, in characters. RS256: for a modulus of 2,048 bits. */
export const SIGNATURE_CHARACTERS: Readonly<Record<SigningAlgorithm, number>> = {
  HS256: 43,
  ES256: 86,
  RS256: 342,
};

/**
 * Signs a payload given as JSON text. With HS256 and RS256 the same payload always results in the same token.
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
      // JWS requires the concatenation of r and s. node:crypto can produce it with `dsaEncoding`, but signing
      // with key options takes twice as long as converting from DER.
      return derToJose(sign('sha256', Buffer.from(signed), key), 'ES256');
    case 'RS256':
      // The default padding of an RSA key is PKCS #1 v1.5, which RS256 requires.
      return sign('sha256', Buffer.from(signed), key).toString('base64url');
  }
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64url');
}
