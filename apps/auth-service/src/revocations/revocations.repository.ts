import { setTimeout as wait } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DatabaseUnavailableError, readPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import { DataSource } from 'typeorm';
import { REVOCATION_INSTANT } from '../audit/newest-issue';
import { ACCESS_TOKEN_LIFETIME_SECONDS } from '../keys/signing-key';
import { REVOCATION_DOMAINS, isDated, isUuid } from './revocation';
import type { RevocationDomain, RevocationKey } from './revocation';
import type { RevocationEntity } from './revocation.entity';

export type RevocationRow = Pick<RevocationEntity, 'domain' | 'identifier' | 'revocationDate'>;

/** The position after which the next page starts. */
export type RevocationPosition = Pick<RevocationRow, 'revocationDate'> & {
  domain: string;
  identifier: string;
};

/** A revocation to write. */
export interface NewRevocation extends RevocationKey {
  /** The caller's subject and application, and its request's address and trace id for the audit trail. */
  subject: string;
  clientId: string | null;
  address?: string | null;
  traceId?: string | null;
  /**
   * `reuse`: a refresh token was used twice, and the revocation ends its session. Audited only if the session
   * had not ended before. Default: `request`.
   */
  because?: 'request' | 'reuse';
  /**
   * True if the caller revokes its own token or session. Rows with false count against the quota of a caller
   * who is not an administrator.
   */
  own?: boolean;
  /**
   * The application whose quota this revocation counts against; empty: callers without an application; null:
   * no quota.
   */
  countedClient?: string | null;
  /**
   * True to interrupt the user's sign-ins in progress: the revocation may concern what they have already
   * checked, e.g. the password.
   */
  interrupts?: boolean;
  /**
   * Expiry of the single token that is revoked, if known. Otherwise the row is kept for 366 days, or 25 hours
   * for a session.
   */
  expiresAt?: Date | null;
}

/** A token that this service issued. */
export interface IssuedToken {
  subject: string | null;
  /** The token's expiry plus one hour for clock skew. */
  expiresAt: Date;
}

/**
 * SQL sub-query: the date `at` of the newest revocation of a person, internal user, subject or application;
 * null if none. It covers tokens issued in or before its second. The arguments are SQL expressions of type
 * text, which may be null.
 */
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
  // OFFSET 0 makes PostgreSQL evaluate the look-ups once.
  return `SELECT ${newest('revocation_date', names)} AS at OFFSET 0`;
}

/** SQL: the date of the newest revocation of the user that interrupts sign-ins in progress; null if none. */
export function newestInterruption(personId: string, userId: string, subject: string): string {
  return newest('interrupts_at', { 'svc-personid': personId, 'internal-legacy': userId, sub: subject });
}

/** SQL: the greatest value of `column`, with one primary-key look-up per name in every query plan. */
function newest(
  column: 'revocation_date' | 'interrupts_at',
  names: Partial<Record<RevocationDomain, string>>,
): string {
  const dates = Object.entries(names).map(
    ([domain, identifier]) =>
      `(SELECT ${column} FROM auth.revocations WHERE domain = '${domain}' AND identifier = ${identifier})`,
  );
  return `greatest(${dates.join(', ')})`;
}

/** SQL: true if the application was revoked at or after an instant. The arguments are SQL expressions. */
export function isApplicationRevokedSince(applicationKey: string, instant: string): string {
  return `coalesce((SELECT revocation_date >= ${instant} FROM auth.revocations
    WHERE domain = 'client_id' AND identifier = ${applicationKey}), false)`;
}

/**
 * SQL: true if a token or session is revoked. LIMIT 1 forces an index look-up; the planner may turn EXISTS
 * into a scan.
 * @param identifier an SQL expression of type text
 */
export function isRevoked(domain: 'jti' | 'sid', identifier: string): string {
  return `coalesce((SELECT true FROM auth.revocations WHERE domain = '${domain}' AND identifier = ${identifier} LIMIT 1), false)`;
}

const COLUMNS = `domain, identifier, revocation_date AS "revocationDate"`;
const ORDER = `ORDER BY revocation_date, domain, identifier LIMIT`;

// Prepared, because callers query single revocations often.
const FIND: PreparedStatement = {
  name: 'find-revocation',
  text: `SELECT ${COLUMNS} FROM auth.revocations WHERE domain = $1 AND identifier = $2`,
};

const NOW: PreparedStatement = { name: 'revocation-clock', text: 'SELECT now()' };

const LIST = `SELECT ${COLUMNS} FROM auth.revocations WHERE revocation_date > $1 AND domain = ANY ($3) ${ORDER} $2`;
// Hand-written SQL: the position is compared as a row. With minDate as a further condition PostgreSQL would
// start its index scan there and read all previous pages again.
const LIST_FROM = `
  SELECT ${COLUMNS} FROM auth.revocations
  WHERE (revocation_date, domain, identifier) > ($2, $3, $4) AND domain = ANY ($5) ${ORDER} $1`;

/**
 * Retention of a session's revocation: 25 hours. Its access tokens live 24 hours, and its refresh tokens end
 * with its family.
 */
export const SESSION_KEPT = `interval '25 hours'`;

// Hand-written SQL: atomic over the registry, its audit trail and the sessions. Revoking any refresh token of
// a session ends the session. A date is rounded down to whole milliseconds, so it is not later than the
// database's clock unless the clock was set back. greatest() prevents a transaction that began earlier but
// ends later from moving the date back.
const PUT = `
  WITH session AS (
    SELECT family_id FROM auth.refresh_token WHERE $1 = 'jti' AND jti = $5::uuid
    UNION ALL SELECT $5::uuid WHERE $1 = 'sid'
  ), named AS (
    SELECT $1::text AS domain, $2::text AS identifier,
      CASE WHEN $1 = 'sid' THEN now() + ${SESSION_KEPT} ELSE $10::timestamptz END AS expires_at
    UNION SELECT 'sid', family_id::text, now() + ${SESSION_KEPT} FROM session WHERE $1 = 'jti'
  ), ended AS (
    UPDATE auth.refresh_family
    SET revoked_at = now(), revoked_because = CASE $11::text WHEN 'request' THEN 'revocation' ELSE $11::text END
    WHERE revoked_at IS NULL AND family_id = (SELECT family_id FROM session)
    RETURNING family_id
  ), audited AS (
    INSERT INTO auth.revocation_audit
      (domain, identifier, because, revoked_by_subject, revoked_by_client, address, trace_id)
    SELECT CASE $11::text WHEN 'reuse' THEN 'refresh-family' ELSE domain END, identifier, $11::text, $3, $4, $6::inet, $7
    FROM named WHERE $11::text = 'request' OR EXISTS (SELECT 1 FROM ended)
  )
  INSERT INTO auth.revocations AS r
    (domain, identifier, revocation_date, revoked_by_subject, revoked_by_client, expires_at, own, interrupts_at, confirmed, counted_client)
  SELECT domain, identifier, present.at, $3, $4, expires_at, $8::boolean, CASE WHEN $9::boolean THEN present.at END, false, $12
  FROM named CROSS JOIN (${REVOCATION_INSTANT}) AS present
  ON CONFLICT (domain, identifier) DO UPDATE SET
    revocation_date = greatest(r.revocation_date, excluded.revocation_date),
    revoked_by_subject = excluded.revoked_by_subject,
    revoked_by_client = excluded.revoked_by_client,
    expires_at = excluded.expires_at,
    own = excluded.own,
    interrupts_at = greatest(r.interrupts_at, excluded.interrupts_at),
    confirmed = false,
    counted_client = excluded.counted_client`;

// Runs after the commit of PUT. Changes nothing if the second of the revocation's date is not over.
const REDATE_LATE = `
  UPDATE auth.revocations SET
    confirmed = false,
    revocation_date = present.at,
    interrupts_at = CASE WHEN $3::boolean THEN present.at ELSE interrupts_at END
  FROM (${REVOCATION_INSTANT}) AS present
  WHERE domain = $1 AND identifier = $2
    AND date_trunc('second', revocation_date) < date_trunc('second', present.at)
  RETURNING 1`;
/** Maximum times that a revocation is redated because its commit ended after the second of its date. */
const MAX_REDATINGS = 8;

const FIND_ISSUED: PreparedStatement = {
  name: 'find-issued-token',
  text: `SELECT subject,
      coalesce(refresh_expires_at, access_issued_at + $2 * interval '1 second') + interval '1 hour' AS "expiresAt"
    FROM auth.find_issued_token($1)`,
};

const IS_SESSION_OF = `SELECT 1 FROM auth.refresh_family WHERE family_id = $1 AND subject = ANY ($2) LIMIT 1`;

// Milliseconds that a repeated revocation waits. Sign-ins that waited for a revoked second to end are issued
// in the first half of the next second, so a repeated revocation is set after that half. It is not set in the
// last 100 ms of a second, because its commit could fall into the next second.
const DELAY = `
  SELECT CASE
    WHEN at.ms BETWEEN 500 AND 900 THEN 0
    WHEN at.ms < 500 AND r.revocation_date >= date_trunc('second', now()) THEN 0
    WHEN at.ms < 500 THEN 500 - at.ms
    ELSE 1500 - at.ms END::float8 AS "delayMs"
  FROM (
    SELECT max(known.revocation_date) AS revocation_date
    FROM unnest($1::text[], $2::text[]) AS named (domain, identifier) CROSS JOIN LATERAL (
      SELECT revocation_date FROM auth.revocations WHERE domain = named.domain AND identifier = named.identifier LIMIT 1
    ) AS known
  ) AS r, LATERAL (SELECT extract(milliseconds FROM now()) % 1000 AS ms) AS at
  WHERE r.revocation_date >= date_trunc('second', now()) - interval '1 second'`;

/**
 * Reads and writes the revocation registry. This file also has the SQL fragments by which other statements
 * check tokens. `confirm-revocations.job`, `purge-revocations` and `revocation-quotas.repository` have their
 * own statements.
 */
@Injectable()
export class RevocationsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  async find(domain: RevocationDomain, identifier: string): Promise<RevocationRow | null> {
    const rows = await readPrepared<RevocationRow>(this.dataSource, FIND, [domain, identifier]);
    return rows[0] ?? null;
  }

  /**
   * Finds a token that this service issued. Null if this service did not issue it, or its rows were purged.
   */
  async findIssued(tokenId: string): Promise<IssuedToken | null> {
    if (!isUuid(tokenId)) return null;
    const parameters = [tokenId, ACCESS_TOKEN_LIFETIME_SECONDS];
    const rows = await readPrepared<IssuedToken>(this.dataSource, FIND_ISSUED, parameters);
    return rows[0] ?? null;
  }

  /** Returns true if the session, ended or not, belongs to one of the subjects. */
  async isSessionOf(sessionId: string, subjects: readonly string[]): Promise<boolean> {
    const rows = await this.dataSource.query<unknown[]>(IS_SESSION_OF, [sessionId, subjects]);
    return rows.length > 0;
  }

  /** Returns the time of the database's clock, which dates revocations. */
  async now(): Promise<Date> {
    const [row] = await readPrepared<{ now: Date }>(this.dataSource, NOW, []);
    return row!.now;
  }

  /**
   * Lists revocations dated strictly after `minDate`, oldest first. A revocation that is set again while a
   * reader pages moves ahead of the reader's position, never behind it.
   */
  list(
    minDate: Date,
    limit: number,
    after: RevocationPosition | null = null,
    domains: readonly RevocationDomain[] = REVOCATION_DOMAINS,
  ): Promise<RevocationRow[]> {
    if (after === null || after.revocationDate <= minDate)
      return this.dataSource.query(LIST, [minDate, limit, domains]);
    const { revocationDate, domain, identifier } = after;
    return this.dataSource.query(LIST_FROM, [limit, revocationDate, domain, identifier, domains]);
  }

  /**
   * Sets a revocation dated now, and audits it. Revoking a refresh token ends its session in the same
   * statement. Once the promise resolves, the revocation covers every token issued before.
   * @throws {DatabaseUnavailableError} when commits are too slow to guarantee that
   */
  async put(revocation: NewRevocation): Promise<void> {
    const { domain, identifier, subject, clientId, interrupts = false } = revocation;
    const { address = null, traceId = null, because = 'request', own = false, expiresAt = null } = revocation;
    const { countedClient = null } = revocation;
    const uuid = isUuid(identifier) ? identifier : null;
    await this.dataSource.query(PUT, [
      domain,
      identifier,
      subject,
      clientId,
      uuid,
      address,
      traceId,
      own,
      interrupts,
      expiresAt,
      because,
      countedClient,
    ]);
    if (isDated(domain)) await this.redateLate(domain, identifier, interrupts);
  }

  /**
   * Redates a revocation until it is committed within the second of its date. A statement that issues tokens
   * without seeing the revocation began before that commit, so its tokens are dated in or before the same
   * second and are covered.
   */
  private async redateLate(domain: string, identifier: string, interrupts: boolean): Promise<void> {
    for (let redatings = 0; redatings < MAX_REDATINGS; redatings += 1) {
      const [rows] = await this.dataSource.query<[unknown[], number]>(REDATE_LATE, [
        domain,
        identifier,
        interrupts,
      ]);
      if (rows.length === 0) return;
    }
    throw new DatabaseUnavailableError(
      'a revocation was written, but commits are too slow to guarantee its date',
    );
  }

  /**
   * Delays a repeated revocation by at most 0.6 s, so that sign-ins can be issued between it and the previous
   * one.
   * @param names every key of the user; a revocation under any of them counts as the previous one
   */
  async delayRepetition(names: readonly RevocationKey[]): Promise<void> {
    const parameters = [names.map(({ domain }) => domain), names.map(({ identifier }) => identifier)];
    const [row] = await this.dataSource.query<{ delayMs: number }[]>(DELAY, parameters);
    if (row !== undefined && row.delayMs > 0) await wait(row.delayMs);
  }
}
