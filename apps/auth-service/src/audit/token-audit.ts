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
const VALUES = `"traceId", flow, status, reason, detail, "applicationKey", subject, "userName", address, "accessTokenId"`;

/** SQL that inserts the row given as JSON in `parameter`, for use as a CTE of the statement that does what is audited: both
 *  happen or neither does. `condition` is the rest of the SELECT: more FROM items, WHERE. */
export function insertTokenAudit(parameter: string, condition = ''): string {
  return `INSERT INTO auth.token_audit (${COLUMNS})
    SELECT ${VALUES} FROM jsonb_to_record(${parameter}::jsonb) AS audit(${FIELDS}) ${condition}`;
}

/** SQL that inserts the rows of the JSON array in $1, each dated back by its `ageMs`. */
export const INSERT_TOKEN_AUDITS = `INSERT INTO auth.token_audit (occurred_at, ${COLUMNS})
  SELECT now() - "ageMs" * interval '1 millisecond', ${VALUES}
  FROM jsonb_to_recordset($1::jsonb) AS audit(${FIELDS}, "ageMs" double precision)`;
