import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { PURGE_BATCH } from '../purge-batch';
import { NOTE_ISSUE } from './newest-issue';
import type { TokenAttempt } from './token-attempt';

/** A row of the audit trail of tokens. */
export interface TokenAuditRow extends TokenAttempt {
  flow: string;
  status: number;
  /** A TokenRejectionReason; null if the request was not decided, e.g. in an outage. */
  reason: number | null;
  /** The internal reason, which callers never see. */
  detail: string | null;
  /** The `jti` of the issued access token, by which it can be found and revoked. */
  accessTokenId: string | null;
}

/** The row of a request that got tokens, without the outcome, which is always `ISSUED`. */
export type IssueAuditRow = Omit<TokenAuditRow, keyof typeof ISSUED>;
export const ISSUED = { status: 200, reason: 0, detail: null } as const;

const OUTCOME = 'status, reason, detail';
const COLUMNS = 'trace_id, flow, application_key, subject, user_name, address, access_token_id';
/**
 * SQL: the members of an IssueAuditRow as columns of a JSON record. Keep them few: each adds a cost to every
 * request.
 */
export const ISSUE_AUDIT_FIELDS = `"traceId" text, flow text, "applicationKey" text, subject text, "userName" text, address inet,
    "accessTokenId" uuid`;
const VALUES = `entry."traceId", entry.flow, entry."applicationKey", entry.subject, entry."userName", entry.address, entry."accessTokenId"`;

/**
 * SQL: inserts the audit rows of issued tokens. Use it as a CTE of the statement that issues the tokens, so
 * that both happen or neither.
 * @param from a table expression with the columns of ISSUE_AUDIT_FIELDS
 * @param condition selects the rows of `from`
 */
export function insertIssueAuditsOf(from: string, condition = 'true'): string {
  return `INSERT INTO auth.token_audit (${OUTCOME}, ${COLUMNS})
    SELECT ${String(ISSUED.status)}, ${String(ISSUED.reason)}, NULL, ${VALUES} FROM ${from} AS entry WHERE ${condition}`;
}

// Hand-written SQL: inserts the rows of repeated refreshes, which write nothing else.
const INSERT_TOKEN_AUDITS = `
  WITH noted AS MATERIALIZED (${NOTE_ISSUE})
  INSERT INTO auth.token_audit (occurred_at, ${OUTCOME}, ${COLUMNS})
  SELECT now() - entry."ageMs" * interval '1 millisecond', entry.status, entry.reason, entry.detail, ${VALUES}
  FROM json_to_recordset($1::json) AS entry(${ISSUE_AUDIT_FIELDS}, status smallint, reason smallint, detail text,
    "ageMs" double precision) CROSS JOIN (SELECT count(*) FROM noted) AS noted`;

/**
 * Maximum refusals of one network in one minute that get a row of their own. Further ones are only counted.
 */
const REFUSALS_IN_FULL = 60;

// Hand-written SQL: up to 500 rows in one statement, each dated back by its `ageMs`. All replicas share one
// count per network and minute; the lock on its row tells each batch how many refusals preceded it. The
// counts are written in the order of the networks, so that two replicas cannot deadlock.
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

// Reads the counts of minutes that ended more than a minute ago, so that they include the last batches of all
// replicas. A batch that is even later starts a new count.
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

// The service's database role may delete audit rows only through this function, which deletes a bounded
// number.
const PURGE_AUDIT = `SELECT auth.purge_audit($1)::int AS removed`;

/**
 * Writes the audit trail of tokens. The service's database role may only insert rows and purge the oldest.
 */
@Injectable()
export class TokenAuditRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /**
   * Writes rows in one statement. Each is dated `ageMs` milliseconds before the database's current time.
   */
  async insert(rows: readonly (TokenAuditRow & { ageMs: number })[]): Promise<void> {
    await this.dataSource.query(INSERT_TOKEN_AUDITS, [JSON.stringify(rows)]);
  }

  /**
   * Writes refusals in one statement. The first 60 of one network in one minute, over all replicas, get a row
   * each; further ones are only counted.
   */
  async insertRefusals(rows: readonly (TokenAuditRow & { network: string; ageMs: number })[]): Promise<void> {
    const entries = rows.map((row, position) => ({ ...row, position }));
    await this.dataSource.query(INSERT_REFUSALS, [JSON.stringify(entries)]);
  }

  /**
   * Deletes the counts of past minutes, and writes an audit row for each that exceeds 60 refusals.
   * @returns the number of deleted counts
   */
  async writeRefusalCounts(): Promise<number> {
    const [row] = await this.dataSource.query<{ removed: number }[]>(WRITE_REFUSAL_COUNTS);
    return row?.removed ?? 0;
  }

  /**
   * Deletes up to 10,000 rows of each audit trail that exceed the retention.
   * @returns the number of deleted rows
   */
  async purge(retentionDays: number): Promise<number> {
    const [row] = await this.dataSource.query<{ removed: number }[]>(PURGE_AUDIT, [retentionDays]);
    return row?.removed ?? 0;
  }
}
