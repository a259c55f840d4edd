import { createHash, randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { SecretBox } from '../keys/secret-box';
import { purgeBatch } from '../purge-batch';
import type { ApplicationReturn } from './application-return';
import type { SignInSecrets } from './identity-provider.client';
import { OpenIdSignIn } from './sign-in.entity';
import { SIGN_IN_LIFETIME_SECONDS } from './sign-in-cookie';

/** Whom a sign-in is for. */
export interface SignInPurpose {
  /** The application that asked for it by name. */
  applicationKey: string | null;
  /** Where it ends; null: here. */
  returnTo: ApplicationReturn | null;
}

/** A sign-in that its own browser has come back with. */
export type ResumedSignIn = SignInSecrets & SignInPurpose;

// Hand-written SQL: one statement, so that of several callbacks with one state, on whichever replicas,
// exactly one gets the row. The wrong browser takes nothing: knowing somebody's state must not be enough to
// spoil their sign-in.
const TAKE = `
  WITH taken AS (
    DELETE FROM auth.openid_sign_in WHERE state_hash = $1 AND browser_hash = $2 AND expires_at > now()
    RETURNING sealed_secrets, application_key
  )
  SELECT sealed_secrets AS "sealedSecrets", application_key AS "applicationKey" FROM taken`;

export const PURGE_SIGN_INS = purgeBatch('openid_sign_in', 'expires_at < now()', 'expires_at');

/** Sign-ins under way: started on one replica, completed on any, once, by the browser that started them. */
@Injectable()
export class SignInsRepository {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly secretBox: SecretBox,
  ) {}

  /** It expires by the database's clock, which all replicas share. */
  async store(
    secrets: SignInSecrets,
    browserSecret: string,
    { applicationKey, returnTo }: SignInPurpose,
  ): Promise<void> {
    const { state, nonce, codeVerifier } = secrets;
    const stateHash = sha256(state);
    const plain = Buffer.from(JSON.stringify([nonce, codeVerifier, returnTo]));
    const signIns = this.dataSource.createQueryBuilder().insert().into(OpenIdSignIn);
    const row = {
      stateHash,
      browserHash: sha256(browserSecret),
      sealedSecrets: this.secretBox.seal(purposeOf(stateHash), plain),
      applicationKey,
      expiresAt: () => `now() + interval '${String(SIGN_IN_LIFETIME_SECONDS)} seconds'`,
    };
    await signIns.values(row).updateEntity(false).execute();
  }

  /** The sign-in with this state, which is used up by it. Null when it is unknown, expired, used before or another browser's. */
  async resume(state: string, browserSecret: string): Promise<ResumedSignIn | null> {
    const stateHash = sha256(state);
    const [taken] = await this.dataSource.query<Pick<OpenIdSignIn, 'sealedSecrets' | 'applicationKey'>[]>(
      TAKE,
      [stateHash, sha256(browserSecret)],
    );
    if (taken === undefined) return null;
    const plain = this.secretBox.open(purposeOf(stateHash), taken.sealedSecrets).toString();
    // A replica of the version before stores no address.
    const [nonce, codeVerifier, returnTo = null] = JSON.parse(plain) as [string, string, ApplicationReturn?];
    return { state, nonce, codeVerifier, applicationKey: taken.applicationKey, returnTo };
  }
}

export function newSignInSecrets(): SignInSecrets {
  return { state: randomSecret(), nonce: randomSecret(), codeVerifier: randomSecret() };
}

/** 32 bytes in base64url: what OAuth asks of states, nonces and PKCE verifiers alike, and the secret of a browser. */
export function randomSecret(): string {
  return randomBytes(32).toString('base64url');
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** What a sealed sign-in is bound to. */
function purposeOf(stateHash: Buffer): string {
  return `openid-sign-in:${stateHash.toString('base64url')}`;
}
