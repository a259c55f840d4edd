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
const FIELDS = `"traceId" text, flow text, status smallint, reason smallint, detail text, "applicationKey" text, subject text,
    "userName" text, address inet, "accessTokenId" uuid`;
const VALUES = `entry."traceId", entry.flow, entry.status, entry.reason, entry.detail, entry."applicationKey", entry.subject,
    entry."userName", entry.address, entry."accessTokenId"`;

/** SQL that inserts the rows that a column `audit` of `from` holds as JSON, for use as a CTE of the statement that does what is
 *  audited: both happen or neither does. @param condition which of them */
export function insertTokenAuditsOf(from: string, condition = 'true'): string {
  return `INSERT INTO auth.token_audit (${COLUMNS})
    SELECT ${VALUES} FROM ${from}, jsonb_to_record(audit) AS entry(${FIELDS}) WHERE ${condition}`;
}

/** SQL that inserts the rows of the JSON array in $1, each dated back by its `ageMs`. */
export const INSERT_TOKEN_AUDITS = `INSERT INTO auth.token_audit (occurred_at, ${COLUMNS})
  SELECT now() - entry."ageMs" * interval '1 millisecond', ${VALUES}
  FROM jsonb_to_recordset($1::jsonb) AS entry(${FIELDS}, "ageMs" double precision)`;
