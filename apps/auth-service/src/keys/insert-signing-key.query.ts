import type { JsonWebKey } from 'node:crypto';
import type { DataSource } from 'typeorm';

const INSERT_ACTIVE = `
  INSERT INTO auth.signing_key (kid, algorithm, state, public_jwk, private_ciphertext)
  VALUES ($1, $2, 'active', $3, $4)
  ON CONFLICT (algorithm) WHERE state = 'active' DO NOTHING`;

/** Stores a first active key, unless another replica has just done so. */
export async function insertFirstSigningKey(
  dataSource: DataSource,
  key: { kid: string; algorithm: 'ES256' | 'RS256'; publicJwk: JsonWebKey; sealedPrivateKey: Buffer },
): Promise<void> {
  await dataSource.query(INSERT_ACTIVE, [
    key.kid,
    key.algorithm,
    JSON.stringify(key.publicJwk),
    key.sealedPrivateKey,
  ]);
}
