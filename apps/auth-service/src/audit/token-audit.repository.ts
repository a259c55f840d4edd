import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import type { TokenAttempt } from './token-attempt';

/** One row of the audit trail of tokens. */
export interface TokenAuditRow extends TokenAttempt {
  flow: string;
  status: number;
  /** TokenRejectionReason; null when there was no verdict, e.g. in an outage. */
  reason: number | null;
  /** Why, for us alone. */
  detail: string | null;
  /** The `jti` of the issued access token: by it the token can be found and revoked. */
  accessTokenId: string | null;
}

const COLUMNS =
  'trace_id, flow, status, reason, detail, application_key, subject, user_name, address, access_token_id';
/** SQL: the members of a TokenAuditRow, as columns of a record that is read from JSON. */
export const TOKEN_AUDIT_FIELDS = `"traceId" text, flow text, status smallint, reason smallint, detail text, "applicationKey" text, subject text,
    "userName" text, address inet, "accessTokenId" uuid`;
const VALUES = `entry."traceId", entry.flow, entry.status, entry.reason, entry.detail, entry."applicationKey", entry.subject,
    entry."userName", entry.address, entry."accessTokenId"`;

/** SQL that inserts the rows that `from` has in columns of TOKEN_AUDIT_FIELDS, for use as a CTE of the statement that does what is
 *  audited: both happen or neither does. @param condition which of them */
export function insertTokenAuditsOf(from: string, condition = 'true'): string {
  return `INSERT INTO auth.token_audit (${COLUMNS}) SELECT ${VALUES} FROM ${from} AS entry WHERE ${condition}`;
}

// By hand: up to 500 rows in one statement, each dated back by its `ageMs`.
const INSERT_TOKEN_AUDITS = `INSERT INTO auth.token_audit (occurred_at, ${COLUMNS})
  SELECT now() - entry."ageMs" * interval '1 millisecond', ${VALUES}
  FROM json_to_recordset($1::json) AS entry(${TOKEN_AUDIT_FIELDS}, "ageMs" double precision)`;

// The service has no other right over the rows. A bounded number at a time.
const PURGE_AUDIT = `SELECT auth.purge_audit($1)::int AS removed`;

/** The audit trail of tokens. The service may add rows and have the oldest removed, nothing else. */
@Injectable()
export class TokenAuditRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Writes rows in one statement. `ageMs` is how long ago each happened: the database's clock dates them all. */
  async insert(rows: readonly (TokenAuditRow & { ageMs: number })[]): Promise<void> {
    await this.dataSource.query(INSERT_TOKEN_AUDITS, [JSON.stringify(rows)]);
  }

  /** Removes up to 10,000 rows of each audit trail that are too old. @returns how many */
  async purge(retentionDays: number): Promise<number> {
    const [row] = await this.dataSource.query<{ removed: number }[]>(PURGE_AUDIT, [retentionDays]);
    return row?.removed ?? 0;
  }
}
