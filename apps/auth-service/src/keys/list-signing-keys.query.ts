import type { DataSource } from 'typeorm';
import type { SigningKeyState } from './find-signing-keys.query';
import type { AsymmetricAlgorithm } from './signing-key-pair';

/** A key as administrators see it. */
export interface ListedSigningKey {
  kid: string;
  algorithm: AsymmetricAlgorithm;
  state: SigningKeyState;
  createdAt: Date;
  stateChangedAt: Date;
}

const LIST = `
  SELECT kid, algorithm, state, created_at AS "createdAt", state_changed_at AS "stateChangedAt"
  FROM auth.signing_key ORDER BY created_at, kid`;

/** Every asymmetric key there ever was, oldest first. */
export function listSigningKeys(dataSource: DataSource): Promise<ListedSigningKey[]> {
  return dataSource.query<ListedSigningKey[]>(LIST);
}
