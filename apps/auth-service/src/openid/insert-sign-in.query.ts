import type { DataSource } from 'typeorm';
import { SIGN_IN_LIFETIME_SECONDS } from './sign-in-cookie';

/** A started sign-in as it is stored: nothing in it is of use to who reads the table. */
export interface StoredSignIn {
  stateHash: Buffer;
  browserHash: Buffer;
  /** Sealed nonce and code verifier. */
  sealedSecrets: Buffer;
  /** The application that asked for it by name. */
  applicationKey: string | null;
}

const INSERT = `
  INSERT INTO auth.openid_sign_in (state_hash, browser_hash, sealed_secrets, application_key, expires_at)
  VALUES ($1, $2, $3, $4, now() + $5 * interval '1 second')`;

/** Notes a started sign-in. It expires by the database's clock, which all replicas share. */
export async function insertSignIn(dataSource: DataSource, signIn: StoredSignIn): Promise<void> {
  await dataSource.query(INSERT, [
    signIn.stateHash,
    signIn.browserHash,
    signIn.sealedSecrets,
    signIn.applicationKey,
    SIGN_IN_LIFETIME_SECONDS,
  ]);
}
