import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { readPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import { DataSource } from 'typeorm';
import { REVOCATION_DOMAINS, isUuid } from './revocation';
import type { RevocationDomain } from './revocation';
import type { RevocationEntity } from './revocation.entity';

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

/** SQL: the present, as revocations are dated: whole milliseconds, rounded down, so that none lies in the future of the clock that made it. */
export const REVOKED_NOW = `date_trunc('milliseconds', now())`;

/** SQL that revokes what `rows` selects: domain, identifier, date, and who revokes. greatest(): a transaction that began earlier but ends later
 *  must not set the date back. */
export function insertRevocations(rows: string): string {
  return `INSERT INTO auth.revocations AS r (domain, identifier, revocation_date, revoked_by_subject, revoked_by_client) ${rows}
    ON CONFLICT (domain, identifier) DO UPDATE SET revocation_date = greatest(r.revocation_date, excluded.revocation_date),
      revoked_by_subject = excluded.revoked_by_subject, revoked_by_client = excluded.revoked_by_client`;
}

/** SQL: the newest revocation (`at`, null if none) of the person, internal user, subject and application that expressions name as texts or
 *  nulls: it covers tokens issued up to its second. For use as a sub-query. */
export function newestRevocation(
  personId: string,
  userId: string,
  subject: string,
  applicationKey: string,
): string {
  const names = {
    'svc-personid': personId,
    'internal-legacy': userId,
    sub: subject,
    client_id: applicationKey,
  };
  const dates = Object.entries(names).map(
    ([domain, identifier]) =>
      `(SELECT revocation_date FROM auth.revocations WHERE domain = '${domain}' AND identifier = ${identifier})`,
  );
  // One look-up by the primary key for each, whatever the table was like when the plan was made; OFFSET 0 has them made once.
  return `SELECT greatest(${dates.join(', ')}) AS at OFFSET 0`;
}

/** SQL: whether the token or session that an expression names as text is revoked. With a limit it is looked up in the index each time; EXISTS
 *  may become a scan. */
export function isRevoked(domain: 'jti' | 'sid', identifier: string): string {
  return `coalesce((SELECT true FROM auth.revocations WHERE domain = '${domain}' AND identifier = ${identifier} LIMIT 1), false)`;
}

const COLUMNS = `domain, identifier, revocation_date AS "revocationDate"`;
const ORDER = `ORDER BY revocation_date, domain, identifier LIMIT`;

// Hot: callers ask for single revocations.
const FIND: PreparedStatement = {
  name: 'find-revocation',
  text: `SELECT ${COLUMNS} FROM auth.revocations WHERE domain = $1 AND identifier = $2`,
};

const PRESENT: PreparedStatement = { name: 'revocation-clock', text: 'SELECT now() AS present' };

const LIST = `SELECT ${COLUMNS} FROM auth.revocations WHERE revocation_date > $1 AND domain = ANY ($3) ${ORDER} $2`;
// By hand: the position is compared as a row. With minDate beside it PostgreSQL would begin there and pass over every earlier page.
const LIST_FROM = `
  SELECT ${COLUMNS} FROM auth.revocations
  WHERE (revocation_date, domain, identifier) > ($2, $3, $4) AND domain = ANY ($5) ${ORDER} $1`;

// By hand: atomic over the registry, its audit trail and the sessions. A session ends with the revocation of any of its refresh tokens.
const PUT = `
  WITH session AS (
    SELECT family_id FROM auth.refresh_token WHERE $1 = 'jti' AND jti = $5::uuid
    UNION ALL SELECT $5::uuid WHERE $1 = 'sid'
  ), named AS (
    SELECT $1::text AS domain, $2::text AS identifier UNION SELECT 'sid', family_id::text FROM session
  ), put AS (${insertRevocations(`SELECT domain, identifier, ${REVOKED_NOW}, $3, $4 FROM named`)}
  ), audited AS (
    INSERT INTO auth.revocation_audit
      (domain, identifier, because, revoked_by_subject, revoked_by_client, address, trace_id)
    SELECT domain, identifier, 'request', $3, $4, $6::inet, $7 FROM named
  )
  UPDATE auth.refresh_family SET revoked_at = now(), revoked_because = 'revocation'
  WHERE revoked_at IS NULL AND family_id = (SELECT family_id FROM session)`;

/** Every statement on the revocation registry. */
@Injectable()
export class RevocationsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  async find(domain: RevocationDomain, identifier: string): Promise<RevocationRow | null> {
    const rows = await readPrepared<RevocationRow>(this.dataSource, FIND, [domain, identifier]);
    return rows[0] ?? null;
  }

  /** What the clock that dates revocations says. */
  async present(): Promise<Date> {
    const [row] = await readPrepared<{ present: Date }>(this.dataSource, PRESENT, []);
    return row!.present;
  }

  /** Revocations dated strictly after `minDate`, oldest first. A revocation that is renewed while a reader pages moves
   *  ahead of the reader, never behind. @param limit null: all */
  list(
    minDate: Date,
    limit: number | null,
    after: RevocationPosition | null = null,
    domains: readonly RevocationDomain[] = REVOCATION_DOMAINS,
  ): Promise<RevocationRow[]> {
    if (after === null || after.revocationDate <= minDate)
      return this.dataSource.query(LIST, [minDate, limit, domains]);
    const { revocationDate, domain, identifier } = after;
    return this.dataSource.query(LIST_FROM, [limit, revocationDate, domain, identifier, domains]);
  }

  /** Sets a revocation to the present time, and audits it. Revoking a refresh token ends its session in the same statement. */
  async put(
    { domain, identifier }: Pick<RevocationRow, 'domain' | 'identifier'>,
    { subject, clientId, address = null, traceId = null }: RevokedBy,
  ): Promise<void> {
    const uuid = isUuid(identifier) ? identifier : null;
    const parameters = [domain, identifier, subject, clientId, uuid, address, traceId];
    await this.dataSource.query(PUT, parameters);
  }
}
