import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import { DataSource } from 'typeorm';
import type { RevocationDomain } from './revocation';
import type { RevocationEntity } from './revocation.entity';

/** A row of the registry. */
export type RevocationRow = Pick<RevocationEntity, 'domain' | 'identifier' | 'revocationDate'>;

/** Where a page of the list ended. */
export type RevocationPosition = Pick<RevocationRow, 'revocationDate'> & {
  domain: string;
  identifier: string;
};

/** Who revokes, and from where. */
export interface RevokedBy {
  subject: string;
  clientId: string | null;
  address?: string | null;
  traceId?: string | null;
}

const COLUMNS = `domain, identifier, revocation_date AS "revocationDate"`;
const ORDER = `ORDER BY revocation_date, domain, identifier LIMIT`;

// Hot: callers ask for single revocations.
const FIND: PreparedStatement = {
  name: 'find-revocation',
  text: `SELECT ${COLUMNS} FROM auth.revocation WHERE domain = $1 AND identifier = $2`,
};

const LIST = `SELECT ${COLUMNS} FROM auth.revocation WHERE revocation_date > $1 ${ORDER} $2`;
// By hand: the position is compared as a row. With minDate beside it PostgreSQL would begin there and pass over every earlier page.
const LIST_FROM = `
  SELECT ${COLUMNS} FROM auth.revocation
  WHERE (revocation_date, domain, identifier) > ($2, $3, $4) ${ORDER} $1`;

// By hand: atomic over the registry, its audit trail and the refresh tokens. greatest(): a transaction that began earlier but ends later
// must not set the date back. Whole milliseconds, rounded down, so that no revocation lies in the future of the clock that made it.
const PUT = `
  WITH put AS (
    INSERT INTO auth.revocation AS r (domain, identifier, revocation_date, revoked_by_subject, revoked_by_client)
    VALUES ($1, $2, date_trunc('milliseconds', now()), $3, $4)
    ON CONFLICT (domain, identifier) DO UPDATE SET
      revocation_date = greatest(r.revocation_date, excluded.revocation_date),
      revoked_by_subject = excluded.revoked_by_subject,
      revoked_by_client = excluded.revoked_by_client
  ), audited AS (
    INSERT INTO auth.revocation_audit
      (domain, identifier, because, revoked_by_subject, revoked_by_client, address, trace_id)
    VALUES ($1, $2, 'request', $3, $4, $6::inet, $7)
  )
  UPDATE auth.refresh_family SET revoked_at = now(), revoked_because = 'revocation'
  WHERE revoked_at IS NULL AND $1 = 'jti'
    AND family_id = (SELECT family_id FROM auth.refresh_token WHERE jti = $5)`;

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/** Every statement on the revocation registry. */
@Injectable()
export class RevocationsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  async find(domain: RevocationDomain, identifier: string): Promise<RevocationRow | null> {
    const rows = await queryPrepared<RevocationRow>(this.dataSource, FIND, [domain, identifier]);
    return rows[0] ?? null;
  }

  /** Revocations dated strictly after `minDate`, oldest first. A revocation that is renewed while a reader pages moves
   *  ahead of the reader, never behind. @param limit null: all */
  list(
    minDate: Date,
    limit: number | null,
    after: RevocationPosition | null = null,
  ): Promise<RevocationRow[]> {
    if (after === null || after.revocationDate <= minDate)
      return this.dataSource.query(LIST, [minDate, limit]);
    const { revocationDate, domain, identifier } = after;
    return this.dataSource.query(LIST_FROM, [limit, revocationDate, domain, identifier]);
  }

  /** Sets a revocation to the present time, and audits it. Revoking a refresh token ends its whole family in the same statement. */
  async put(
    { domain, identifier }: Pick<RevocationRow, 'domain' | 'identifier'>,
    { subject, clientId, address = null, traceId = null }: RevokedBy,
  ): Promise<void> {
    const refreshJti = domain === 'jti' && UUID.test(identifier) ? identifier : null;
    const parameters = [domain, identifier, subject, clientId, refreshJti, address, traceId];
    await this.dataSource.query(PUT, parameters);
  }
}
