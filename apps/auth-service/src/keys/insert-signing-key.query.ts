import type { DataSource } from 'typeorm';
import type { NewSigningKey } from './signing-key-pair';

// One active and one next key per algorithm: unique indexes say so, whichever of two writers comes second.
const INSERT = `
  INSERT INTO auth.signing_key (kid, algorithm, state, public_jwk, private_ciphertext)
  VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT DO NOTHING RETURNING kid`;

/** Stores a new key. @returns false, and nothing is stored, when its algorithm has a key in that state already */
export async function insertSigningKey(
  dataSource: DataSource,
  key: NewSigningKey,
  state: 'next' | 'active',
): Promise<boolean> {
  const rows = await dataSource.query<unknown[]>(INSERT, [
    key.kid,
    key.algorithm,
    state,
    JSON.stringify(key.publicJwk),
    key.sealedPrivateKey,
  ]);
  return rows.length > 0;
}
