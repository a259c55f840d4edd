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

/** The row of a request that got tokens: its outcome is always the same. */
export type IssueAuditRow = Omit<TokenAuditRow, keyof typeof ISSUED>;
export const ISSUED = { status: 200, reason: 0, detail: null } as const;

const OUTCOME = 'status, reason, detail';
const COLUMNS = 'trace_id, flow, application_key, subject, user_name, address, access_token_id';
/** SQL: the members of an IssueAuditRow, as columns of a record that is read from JSON. Each one costs every request. */
export const ISSUE_AUDIT_FIELDS = `"traceId" text, flow text, "applicationKey" text, subject text, "userName" text, address inet,
    "accessTokenId" uuid`;
const VALUES = `entry."traceId", entry.flow, entry."applicationKey", entry.subject, entry."userName", entry.address, entry."accessTokenId"`;

/** SQL that inserts the rows of issued tokens that `from` has in columns of ISSUE_AUDIT_FIELDS, for use as a CTE of the statement that
 *  issues them: both happen or neither does. @param condition which of them */
export function insertIssueAuditsOf(from: string, condition = 'true'): string {
  return `INSERT INTO auth.token_audit (${OUTCOME}, ${COLUMNS})
    SELECT ${String(ISSUED.status)}, ${String(ISSUED.reason)}, NULL, ${VALUES} FROM ${from} AS entry WHERE ${condition}`;
}

// By hand: up to 500 rows in one statement, each dated back by its `ageMs`.
const INSERT_TOKEN_AUDITS = `INSERT INTO auth.token_audit (occurred_at, ${OUTCOME}, ${COLUMNS})
  SELECT now() - entry."ageMs" * interval '1 millisecond', entry.status, entry.reason, entry.detail, ${VALUES}
  FROM json_to_recordset($1::json) AS entry(${ISSUE_AUDIT_FIELDS}, status smallint, reason smallint, detail text,
    "ageMs" double precision)`;

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
