import { createHash, randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { isInFuture } from '@platform/database';
import type { DataSource } from 'typeorm';
import { SecretBox } from '../keys/secret-box';
import { purgeBatch } from '../purge-batch';
import type { ApplicationReturn } from './application-return';
import type { SignInTerms } from './identity-provider.client';
import type { OpenIdSignIn } from './sign-in.entity';
import { SIGN_IN_LIFETIME_SECONDS } from './sign-in-cookie';

/** The browser and the network that started a sign-in. */
export interface SignInOrigin {
  /** The secret in the browser's cookie. */
  browserSecret: string;
  /** See `OpenIdSignIn.network`. */
  network: string;
}

/** The application that a sign-in is for. */
export interface SignInPurpose {
  /** The application named by the request. It is verified only if `returnTo` is set. */
  applicationKey: string | null;
  /** The application's address to return to. Null: the sign-in ends at this service. */
  returnTo: ApplicationReturn | null;
}

/** A sign-in resumed by the browser that started it. */
export interface ResumedSignIn extends SignInTerms, SignInPurpose {
  /** When the sign-in began, by the database's clock. */
  begunAt: Date;
}

type TakenSignIn = Pick<OpenIdSignIn, 'sealedSecrets' | 'applicationKey'> & Pick<ResumedSignIn, 'begunAt'>;

const IS_WAITING = isInFuture('expires_at', SIGN_IN_LIFETIME_SECONDS);

// Hand-written SQL: of concurrent callbacks with one state, on any replicas, exactly one gets the row.
// Another browser's request does not consume the row, so knowing a state is not enough to break someone's
// sign-in.
const TAKE = `
  WITH taken AS (
    DELETE FROM auth.openid_sign_in WHERE state_hash = $1 AND browser_hash = $2 AND ${IS_WAITING}
    RETURNING sealed_secrets, application_key, expires_at
  )
  SELECT sealed_secrets AS "sealedSecrets", application_key AS "applicationKey",
    expires_at - interval '${String(SIGN_IN_LIFETIME_SECONDS)} seconds' AS "begunAt"
  FROM taken`;

// Hand-written SQL: counts and inserts in one round trip. Concurrent requests do not see each other's rows,
// so a network may exceed its limit $6 by up to the number of connections.
const STORE = `
  INSERT INTO auth.openid_sign_in (state_hash, browser_hash, sealed_secrets, application_key, network, expires_at)
  SELECT $1::bytea, $2::bytea, $3::bytea, $4::text, $5::text, now() + interval '${String(SIGN_IN_LIFETIME_SECONDS)} seconds'
  WHERE $6 > (
    SELECT count(*) FROM (
      SELECT 1 FROM auth.openid_sign_in WHERE network = $5::text AND ${IS_WAITING} LIMIT $6::bigint
    ) AS waiting)
  RETURNING 1`;

const COUNT_WAITING = `
  SELECT count(*)::int AS waiting
  FROM (SELECT 1 FROM auth.openid_sign_in WHERE ${IS_WAITING} LIMIT $1) AS waiting`;

export const PURGE_SIGN_INS = purgeBatch('openid_sign_in', 'expires_at < now()', 'expires_at');

/**
 * Sign-ins in progress. A sign-in is started on one replica and completed once, on any replica, by the same
 * browser.
 */
@Injectable()
export class SignInsRepository {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly secretBox: SecretBox,
  ) {}

  /**
   * Stores a sign-in, unless the network already has `networkLimit` waiting. It expires by the database's
   * clock, which all replicas share.
   * @returns whether it was stored
   */
  async store(
    terms: SignInTerms,
    { browserSecret, network }: SignInOrigin,
    { applicationKey, returnTo }: SignInPurpose,
    networkLimit: number,
  ): Promise<boolean> {
    const { state, nonce, codeVerifier, maxAgeSeconds } = terms;
    const stateHash = sha256(state);
    const plain = Buffer.from(JSON.stringify([nonce, codeVerifier, returnTo, maxAgeSeconds]));
    const stored = await this.dataSource.query<unknown[]>(STORE, [
      stateHash,
      sha256(browserSecret),
      this.secretBox.seal(purposeOf(stateHash), plain),
      applicationKey,
      network,
      networkLimit,
    ]);
    return stored.length > 0;
  }

  /** Counts the waiting sign-ins, up to `limit`. */
  async countWaiting(limit: number): Promise<number> {
    const [row] = await this.dataSource.query<{ waiting: number }[]>(COUNT_WAITING, [limit]);
    return row!.waiting;
  }

  /**
   * Returns the sign-in with this state and deletes it. Null if it is unknown, expired, already used or
   * another browser's.
   */
  async resume(state: string, browserSecret: string): Promise<ResumedSignIn | null> {
    const stateHash = sha256(state);
    const [taken] = await this.dataSource.query<TakenSignIn[]>(TAKE, [stateHash, sha256(browserSecret)]);
    if (taken === undefined) return null;
    const plain = this.secretBox.open(purposeOf(stateHash), taken.sealedSecrets).toString();
    // Release 1.0.0 stored no maximum age.
    const [nonce, codeVerifier, returnTo, maxAgeSeconds = null] = JSON.parse(plain) as [
      string,
      string,
      ApplicationReturn | null,
      number?,
    ];
    const { applicationKey, begunAt } = taken;
    return { state, nonce, codeVerifier, maxAgeSeconds, applicationKey, returnTo, begunAt };
  }
}

export function newSignInTerms(maxAgeSeconds: number): SignInTerms {
  return { state: randomSecret(), nonce: randomSecret(), codeVerifier: randomSecret(), maxAgeSeconds };
}

/**
 * Returns 32 random bytes in base64url: a valid OAuth state, nonce and PKCE verifier, and a browser's secret.
 */
export function randomSecret(): string {
  return randomBytes(32).toString('base64url');
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Returns the purpose that a sealed sign-in is bound to. */
function purposeOf(stateHash: Buffer): string {
  return `openid-sign-in:${stateHash.toString('base64url')}`;
}
