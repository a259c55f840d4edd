import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { isInFuture } from '@platform/database';
import type { DataSource, QueryDeepPartialEntity } from 'typeorm';
import { purgeBatch } from '../purge-batch';
import type { ApplicationReturn } from './application-return';
import { SignOnCode } from './sign-in.entity';
import { randomSecret } from './sign-ins.repository';
import type { ProvenSignOn } from './single-sign-on.service';

/** Lifetime of a code in seconds. */
const LIFETIME_SECONDS = 60;

// Hand-written SQL: of concurrent requests with one code, on any replicas, exactly one gets the row. A
// request without the right verifier does not consume the row, so an intercepted code is not enough to break
// a sign-in.
const TAKE = `
  WITH taken AS (
    DELETE FROM auth.sign_on_code
    WHERE code_hash = $1 AND application_key = $2 AND code_challenge = $3 AND ${isInFuture('expires_at', LIFETIME_SECONDS)}
    RETURNING issuer, subject, auth_time, coalesce(evidence_at, expires_at - interval '${String(LIFETIME_SECONDS)} seconds') AS evidence_at,
      expires_at
  )
  SELECT issuer, subject, auth_time AS "authTime", evidence_at AS "evidenceAt", expires_at AS "expiresAt" FROM taken`;

export const PURGE_SIGN_ON_CODES = purgeBatch('sign_on_code', 'expires_at < now()', 'expires_at');

/** A code as sent by the application, with the verifier of its challenge. */
export interface PresentedCode {
  applicationKey: string;
  code: string;
  codeVerifier: string;
}

/** The sign-in behind a redeemed code. */
export interface TakenCode extends ProvenSignOn {
  expiresAt: Date;
}

/** One-time codes of completed sign-ins. A code is made on one replica and may be exchanged on any. */
@Injectable()
export class SignOnCodesRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Whether an enabled application has registered exactly this address. */
  async mayReturnTo(applicationKey: string, url: string): Promise<boolean> {
    const rows = await this.dataSource.query<unknown[]>(
      `SELECT 1 FROM auth.application WHERE application_key = $1 AND enabled AND $2 = ANY (return_urls)`,
      [applicationKey, url],
    );
    return rows.length > 0;
  }

  /** Creates a code. It expires by the database's clock, which all replicas share. */
  async create(
    { applicationKey, codeChallenge }: ApplicationReturn,
    { issuer, subject, authTime, evidenceAt }: ProvenSignOn,
  ): Promise<string> {
    const code = randomSecret();
    await this.insert({
      codeHash: sha256(code),
      applicationKey,
      codeChallenge: Buffer.from(codeChallenge, 'base64url'),
      issuer,
      subject,
      authTime: authTime ?? (() => 'now()'),
      evidenceAt,
      expiresAt: () => `now() + interval '${String(LIFETIME_SECONDS)} seconds'`,
    });
    return code;
  }

  private async insert(row: QueryDeepPartialEntity<SignOnCode>): Promise<void> {
    const codes = this.dataSource.createQueryBuilder().insert().into(SignOnCode);
    await codes.values(row).updateEntity(false).execute();
  }

  /**
   * Returns the sign-in behind a code and deletes the code. Null if the code is unknown, expired, used or
   * another application's, or if the verifier does not match.
   */
  async take({ applicationKey, code, codeVerifier }: PresentedCode): Promise<TakenCode | null> {
    const parameters = [sha256(code), applicationKey, sha256(codeVerifier)];
    const [taken] = await this.dataSource.query<TakenCode[]>(TAKE, parameters);
    return taken ?? null;
  }

  /** Restores a taken code with its original expiry. */
  async giveBack({ applicationKey, code, codeVerifier }: PresentedCode, taken: TakenCode): Promise<void> {
    const { issuer, subject, authTime, evidenceAt, expiresAt } = taken;
    await this.insert({
      codeHash: sha256(code),
      applicationKey,
      codeChallenge: sha256(codeVerifier),
      issuer,
      subject,
      authTime: authTime ?? (() => 'now()'),
      evidenceAt,
      expiresAt,
    });
  }
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
