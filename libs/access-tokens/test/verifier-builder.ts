import { ManualClock } from '@platform/time';
import { createVerificationKey, KeyRing } from '../src/keys/keys';
import type { VerificationKey } from '../src/keys/keys';
import { AccessTokenVerifier } from '../src/verification/access-token-verifier';
import type { AccessTokenVerifierOptions } from '../src/verification/access-token-verifier';
import {
  AUDIENCE,
  ec,
  HMAC_SECRET,
  ISSUED_AT,
  ISSUER,
  LEGACY_ISSUER,
  LEGACY_SECRET,
  rsa,
} from './token-builder';

/** Returns one key per algorithm for our issuer, and an HS256 key of a legacy issuer. */
export function testKeys(): VerificationKey[] {
  return [
    createVerificationKey({ kid: 'hs-1', alg: 'HS256', secret: HMAC_SECRET }),
    createVerificationKey({ kid: 'rs-1', alg: 'RS256', publicKey: rsa.publicKey, issuer: ISSUER }),
    createVerificationKey({ kid: 'es-1', alg: 'ES256', publicKey: ec.publicKey, issuer: ISSUER }),
    createVerificationKey({ alg: 'HS256', secret: LEGACY_SECRET, issuer: LEGACY_ISSUER }),
  ];
}

/**
 * Creates a verifier whose clock starts at the tokens' time of issue. The test can change the clock and the
 * keys.
 */
export function testVerifier(overrides: Partial<AccessTokenVerifierOptions> = {}): {
  verifier: AccessTokenVerifier;
  clock: ManualClock;
  keys: KeyRing;
} {
  const clock = new ManualClock(ISSUED_AT);
  const keys = new KeyRing(testKeys());
  const verifier = new AccessTokenVerifier({
    issuer: ISSUER,
    audience: AUDIENCE,
    keys,
    clock,
    revocations: { isRevoked: () => false },
    legacyIssuers: [{ issuer: LEGACY_ISSUER, audience: 'legacy-audience' }],
    ...overrides,
  });
  return { verifier, clock, keys };
}
