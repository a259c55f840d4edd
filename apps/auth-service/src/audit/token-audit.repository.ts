import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { PURGE_BATCH } from '../purge-batch';
import { NOTE_ISSUE } from '../token/newest-issue';
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
/**
 * SQL: the members of an IssueAuditRow, as columns of a record that is read from JSON. Each one costs every
 * request.
 */
export const ISSUE_AUDIT_FIELDS = `"traceId" text, flow text, "applicationKey" text, subject text, "userName" text, address inet,
    "accessTokenId" uuid`;
const VALUES = `entry."traceId", entry.flow, entry."applicationKey", entry.subject, entry."userName", entry.address, entry."accessTokenId"`;

/**
 * SQL that inserts the rows of issued tokens that `from` has in columns of ISSUE_AUDIT_FIELDS, for use as a
 * CTE of the statement that issues them: both happen or neither does.
 * @param condition which of them
 */
export function insertIssueAuditsOf(from: string, condition = 'true'): string {
  return `INSERT INTO auth.token_audit (${OUTCOME}, ${COLUMNS})
    SELECT ${String(ISSUED.status)}, ${String(ISSUED.reason)}, NULL, ${VALUES} FROM ${from} AS entry WHERE ${condition}`;
}

// Hand-written SQL: the row of a repeated refresh, which writes nothing else.
const INSERT_TOKEN_AUDITS = `
  WITH noted AS MATERIALIZED (${NOTE_ISSUE})
  INSERT INTO auth.token_audit (occurred_at, ${OUTCOME}, ${COLUMNS})
  SELECT now() - entry."ageMs" * interval '1 millisecond', entry.status, entry.reason, entry.detail, ${VALUES}
  FROM json_to_recordset($1::json) AS entry(${ISSUE_AUDIT_FIELDS}, status smallint, reason smallint, detail text,
    "ageMs" double precision) CROSS JOIN (SELECT count(*) FROM noted) AS noted`;

/** Refusals of one network in one minute that get a row each. */
const REFUSALS_IN_FULL = 60;

// Hand-written SQL: up to 500 rows in one statement, each dated back by its `ageMs`. The count of a network's
// minute is one row for all replicas: its lock makes each batch know how many came before. In the order of
// the networks, so that two replicas do not wait for each other crosswise.
const INSERT_REFUSALS = `
  WITH entry AS MATERIALIZED (
    SELECT refused.*, date_trunc('minute', occurred_at) AS minute,
      row_number() OVER (PARTITION BY network, date_trunc('minute', occurred_at) ORDER BY position) AS nth,
      count(*) OVER (PARTITION BY network, date_trunc('minute', occurred_at)) AS of_batch
    FROM (
      SELECT r.*, now() - r."ageMs" * interval '1 millisecond' AS occurred_at
      FROM json_to_recordset($1::json) AS r(position integer, network text, "traceId" text, flow text, "applicationKey" text,
        subject text, "userName" text, address inet, status smallint, reason smallint, detail text, "ageMs" double precision)
    ) AS refused
  ), counted AS (
    INSERT INTO auth.refusal_count AS c (network, minute, refusals, flow, status, reason, address)
    SELECT network, minute, of_batch, flow, status, reason, address
    FROM entry WHERE nth = of_batch ORDER BY network, minute
    ON CONFLICT (network, minute) DO UPDATE SET
      refusals = c.refusals + excluded.refusals,
      flow = excluded.flow,
      status = excluded.status,
      reason = excluded.reason,
      address = excluded.address
    RETURNING network, minute, refusals
  )
  INSERT INTO auth.token_audit
    (occurred_at, status, reason, detail, trace_id, flow, application_key, subject, user_name, address)
  SELECT entry.occurred_at, entry.status, entry.reason, entry.detail, entry."traceId", entry.flow, entry."applicationKey",
    entry.subject, entry."userName", entry.address
  FROM entry JOIN counted USING (network, minute)
  WHERE counted.refusals - entry.of_batch + entry.nth <= ${String(REFUSALS_IN_FULL)}
  ORDER BY entry.position`;

// A minute after it is over: the other replica's last batch is in by then. One that comes later begins a
// count of its own.
const WRITE_REFUSAL_COUNTS = `
  WITH over AS (
    DELETE FROM auth.refusal_count WHERE (network, minute) IN (
      SELECT network, minute FROM auth.refusal_count
      WHERE minute < date_trunc('minute', now()) - interval '1 minute'
      ORDER BY minute LIMIT ${String(PURGE_BATCH)} FOR UPDATE SKIP LOCKED
    ) RETURNING *
  ), audited AS (
    INSERT INTO auth.token_audit (occurred_at, status, reason, detail, flow, address, refusals)
    SELECT minute + interval '1 minute', status, reason,
      'and ' || refusals - ${String(REFUSALS_IN_FULL)} || ' more refusals of ' || network || ' in this minute; the last one is shown',
      flow, address, refusals - ${String(REFUSALS_IN_FULL)}
    FROM over WHERE refusals > ${String(REFUSALS_IN_FULL)}
  )
  SELECT count(*)::int AS removed FROM over`;

// The service has no other right over the rows. A bounded number at a time.
const PURGE_AUDIT = `SELECT auth.purge_audit($1)::int AS removed`;

/** The audit trail of tokens. The service may add rows and have the oldest removed, nothing else. */
@Injectable()
export class TokenAuditRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /**
   * Writes rows in one statement. `ageMs` is how long ago each happened: the database's clock dates them all.
   */
  async insert(rows: readonly (TokenAuditRow & { ageMs: number })[]): Promise<void> {
    await this.dataSource.query(INSERT_TOKEN_AUDITS, [JSON.stringify(rows)]);
  }

  /**
   * Writes refusals in one statement. Of one network's in one minute, on all replicas, the first 60 get a row
   * each; the others are counted.
   */
  async insertRefusals(rows: readonly (TokenAuditRow & { network: string; ageMs: number })[]): Promise<void> {
    const entries = rows.map((row, position) => ({ ...row, position }));
    await this.dataSource.query(INSERT_REFUSALS, [JSON.stringify(entries)]);
  }

  /**
   * Writes the row of each minute that is over and had more refusals of a network than get a row each.
   * @returns how many counts are done
   */
  async writeRefusalCounts(): Promise<number> {
    const [row] = await this.dataSource.query<{ removed: number }[]>(WRITE_REFUSAL_COUNTS);
    return row?.removed ?? 0;
  }

  /** Removes up to 10,000 rows of each audit trail that are too old. @returns how many */
  async purge(retentionDays: number): Promise<number> {
    const [row] = await this.dataSource.query<{ removed: number }[]>(PURGE_AUDIT, [retentionDays]);
    return row?.removed ?? 0;
  }
}
