import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { purgeBatch } from '../purge-batch';
import type { ApplicationReturn } from './application-return';
import type { SignedInSubject } from './identity-provider.client';
import { SignOnCode } from './sign-in.entity';
import { randomSecret } from './sign-ins.repository';

/** How long an application has to fetch its tokens. */
const LIFETIME_SECONDS = 60;

// Hand-written SQL: one statement, so that of several requests with one code, on whichever replicas, exactly
// one gets the row. Whoever lacks the verifier takes nothing: an overheard code must not be enough to spoil a
// sign-in.
const TAKE = `
  WITH taken AS (
    DELETE FROM auth.sign_on_code
    WHERE code_hash = $1 AND application_key = $2 AND code_challenge = $3 AND expires_at > now()
    RETURNING issuer, subject, auth_time
  )
  SELECT issuer, subject, auth_time AS "authTime" FROM taken`;

export const PURGE_SIGN_ON_CODES = purgeBatch('sign_on_code', 'expires_at < now()', 'expires_at');

/** Codes of completed sign-ins: made on one replica, exchanged on any, once. */
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

  /** Makes a code. It expires by the database's clock, which all replicas share. */
  async create(
    { applicationKey, codeChallenge }: ApplicationReturn,
    { issuer, subject, authTime }: SignedInSubject,
  ): Promise<string> {
    const code = randomSecret();
    const row = {
      codeHash: sha256(code),
      applicationKey,
      codeChallenge: Buffer.from(codeChallenge, 'base64url'),
      issuer,
      subject,
      authTime: authTime ?? (() => 'now()'),
      expiresAt: () => `now() + interval '${String(LIFETIME_SECONDS)} seconds'`,
    };
    const codes = this.dataSource.createQueryBuilder().insert().into(SignOnCode);
    await codes.values(row).updateEntity(false).execute();
    return code;
  }

  /** Whose sign-in a code stands for; that uses it up. Null when it is unknown, expired, used, another application's, or the verifier is
   *  another's. */
  async take(
    applicationKey: string,
    code: string,
    codeVerifier: string,
  ): Promise<Required<SignedInSubject> | null> {
    const parameters = [sha256(code), applicationKey, sha256(codeVerifier)];
    const [taken] = await this.dataSource.query<SignedInSubject[]>(TAKE, parameters);
    return taken ?? null;
  }
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
