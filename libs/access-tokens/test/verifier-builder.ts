import { ManualClock } from '@platform/time';
import { createVerificationKey, KeyRing } from '../src/keys/keys';
import type { VerificationKey } from '../src/keys/keys';
import { AccessTokenVerifier } from '../src/token/access-token-verifier';
import type { AccessTokenVerifierOptions } from '../src/token/access-token-verifier';
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

/** One key of each kind for our issuer, and a symmetric one of a legacy issuer. */
export function testKeys(): VerificationKey[] {
  return [
    createVerificationKey({ kid: 'hs-1', alg: 'HS256', secret: HMAC_SECRET }),
    createVerificationKey({ kid: 'rs-1', alg: 'RS256', publicKey: rsa.publicKey, issuer: ISSUER }),
    createVerificationKey({ kid: 'es-1', alg: 'ES256', publicKey: ec.publicKey, issuer: ISSUER }),
    createVerificationKey({ alg: 'HS256', secret: LEGACY_SECRET, issuer: LEGACY_ISSUER }),
  ];
}

/** A verifier at the tokens' instant of issue, with a clock and keys that the test can change. */
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
