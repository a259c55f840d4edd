import { createHash, randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { isStillToCome } from '@platform/database';
import type { DataSource } from 'typeorm';
import { SecretBox } from '../keys/secret-box';
import { purgeBatch } from '../purge-batch';
import type { ApplicationReturn } from './application-return';
import type { SignInTerms } from './identity-provider.client';
import type { OpenIdSignIn } from './sign-in.entity';
import { SIGN_IN_LIFETIME_SECONDS } from './sign-in-cookie';

/** Where a sign-in begins. */
export interface SignInOrigin {
  /** In the cookie of the browser. */
  browserSecret: string;
  /** See `OpenIdSignIn.network`. */
  network: string;
}

/** Whom a sign-in is for. */
export interface SignInPurpose {
  /** The application that was named. Only where `returnTo` is set it is known to exist. */
  applicationKey: string | null;
  /** Where it ends; null: here. */
  returnTo: ApplicationReturn | null;
}

/** A sign-in that its own browser has come back with. */
export interface ResumedSignIn extends SignInTerms, SignInPurpose {
  /** By the database's clock. */
  begunAt: Date;
}

type TakenSignIn = Pick<OpenIdSignIn, 'sealedSecrets' | 'applicationKey'> & Pick<ResumedSignIn, 'begunAt'>;

const IS_WAITING = isStillToCome('expires_at', SIGN_IN_LIFETIME_SECONDS);

// Hand-written SQL: one statement, so that of several callbacks with one state, on whichever replicas,
// exactly one gets the row. The wrong browser takes nothing: knowing somebody's state must not be enough to
// spoil their sign-in.
const TAKE = `
  WITH taken AS (
    DELETE FROM auth.openid_sign_in WHERE state_hash = $1 AND browser_hash = $2 AND ${IS_WAITING}
    RETURNING sealed_secrets, application_key, expires_at
  )
  SELECT sealed_secrets AS "sealedSecrets", application_key AS "applicationKey",
    expires_at - interval '${String(SIGN_IN_LIFETIME_SECONDS)} seconds' AS "begunAt"
  FROM taken`;

// By hand: it counts and inserts in one round trip. Requests that come at the same instant do not see each
// other's rows, so a network may exceed its limit $6 by as many as there are connections.
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

/** Sign-ins under way: started on one replica, completed on any, once, by the browser that started them. */
@Injectable()
export class SignInsRepository {
  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    private readonly secretBox: SecretBox,
  ) {}

  /** Stores a sign-in unless as many of its network wait as may. It expires by the database's clock, which
   *  all replicas share.
   *  @returns whether it was stored */
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

  /** How many sign-ins wait, counted up to `limit`. */
  async countWaiting(limit: number): Promise<number> {
    const [row] = await this.dataSource.query<{ waiting: number }[]>(COUNT_WAITING, [limit]);
    return row!.waiting;
  }

  /**
   * The sign-in with this state, which is used up by it. Null when it is unknown, expired, used before or
   * another browser's.
   */
  async resume(state: string, browserSecret: string): Promise<ResumedSignIn | null> {
    const stateHash = sha256(state);
    const [taken] = await this.dataSource.query<TakenSignIn[]>(TAKE, [stateHash, sha256(browserSecret)]);
    if (taken === undefined) return null;
    const plain = this.secretBox.open(purposeOf(stateHash), taken.sealedSecrets).toString();
    // Release 1.0.0 stores no age.
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
 * 32 bytes in base64url: what OAuth asks of states, nonces and PKCE verifiers alike, and the secret of a
 * browser.
 */
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
