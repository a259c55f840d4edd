import { types } from 'node:util';
import { z } from 'zod';
import { KEY_ID_PATTERN } from '../token/parse-token';
import { createVerificationKey } from './verification-key';
import type { VerificationKey } from './verification-key';

const ALGORITHM_OF_TYPE = { RSA: 'RS256', EC: 'ES256' } as const;

const jwk = z.looseObject({
  kty: z.enum(['RSA', 'EC']),
  kid: z.string().regex(KEY_ID_PATTERN),
  alg: z.enum(['RS256', 'ES256']).optional(),
  use: z.literal('sig').optional(),
});
const jwks = z.object({ keys: z.array(z.unknown()).max(100) });

/**
 * The keys of a JWK Set (RFC 7517) that can verify this issuer's tokens. Entries that we do not understand, cannot import
 * or must not use (symmetric, weak, for encryption, without a usable `kid`) are left out, as the RFC asks.
 * @throws {Error} when it is not a JWK Set at all, or names one key id twice
 */
export function keysFromJwks(document: unknown, issuer: string | undefined): VerificationKey[] {
  const keys = jwks.parse(document).keys.map((entry) => keyFromJwk(entry, issuer));
  return keys.filter((key) => key !== null);
}

function keyFromJwk(entry: unknown, issuer: string | undefined): VerificationKey | null {
  const read = jwk.safeParse(entry);
  if (!read.success) return null;
  const { kty, kid, alg } = read.data;
  if (alg !== undefined && alg !== ALGORITHM_OF_TYPE[kty]) return null;
  try {
    return createVerificationKey({
      kid,
      alg: ALGORITHM_OF_TYPE[kty],
      publicKey: read.data,
      ...(issuer === undefined ? {} : { issuer }),
    });
  } catch (error) {
    if (types.isNativeError(error)) return null;
    throw error;
  }
}
