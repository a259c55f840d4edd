import type { JsonWebKey } from 'node:crypto';
import type { DataSource } from 'typeorm';

/** next → active → retired → removed. `next` is published ahead of use; `retired` still verifies; `removed` does not. */
export type SigningKeyState = 'next' | 'active' | 'retired' | 'removed';

/** An asymmetric key as stored: the public part as JWK, the private part sealed. */
export interface StoredSigningKey {
  kid: string;
  algorithm: 'ES256' | 'RS256';
  state: Exclude<SigningKeyState, 'removed'>;
  publicJwk: JsonWebKey;
  sealedPrivateKey: Buffer;
  stateChangedAt: Date;
}

const FIND = `
  SELECT kid, algorithm, state, public_jwk AS "publicJwk", private_ciphertext AS "sealedPrivateKey",
    state_changed_at AS "stateChangedAt"
  FROM auth.signing_key WHERE state <> 'removed' ORDER BY created_at, kid`;

/** Every key that may verify a token, in order of creation. */
export function findSigningKeys(dataSource: DataSource): Promise<StoredSigningKey[]> {
  return dataSource.query<StoredSigningKey[]>(FIND);
}
