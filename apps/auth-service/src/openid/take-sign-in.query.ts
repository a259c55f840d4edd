import type { DataSource } from 'typeorm';
import type { StoredSignIn } from './insert-sign-in.query';

// One statement, so that of several callbacks with one state, on whichever replicas, exactly one gets the row. The
// wrong browser takes nothing: knowing somebody's state must not be enough to spoil their sign-in.
const TAKE = `
  WITH taken AS (
    DELETE FROM auth.openid_sign_in WHERE state_hash = $1 AND browser_hash = $2 AND expires_at > now()
    RETURNING sealed_secrets, application_key
  )
  SELECT sealed_secrets AS "sealedSecrets", application_key AS "applicationKey" FROM taken`;

/** Takes a started sign-in out of the table; null when there is none for this state and browser, or no longer. */
export async function takeSignIn(
  dataSource: DataSource,
  { stateHash, browserHash }: Pick<StoredSignIn, 'stateHash' | 'browserHash'>,
): Promise<Pick<StoredSignIn, 'sealedSecrets' | 'applicationKey'> | null> {
  const rows = await dataSource.query<Pick<StoredSignIn, 'sealedSecrets' | 'applicationKey'>[]>(TAKE, [
    stateHash,
    browserHash,
  ]);
  return rows[0] ?? null;
}
