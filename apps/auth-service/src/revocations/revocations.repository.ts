import { setTimeout as wait } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { DatabaseUnavailableError, readPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import { DataSource } from 'typeorm';
import { REVOCATION_INSTANT } from '../token/newest-issue';
import { ACCESS_TOKEN_LIFETIME_SECONDS } from '../token/token-claims';
import { REVOCATION_DOMAINS, isDated, isUuid } from './revocation';
import type { RevocationDomain, RevocationKey } from './revocation';
import type { RevocationEntity } from './revocation.entity';

export type RevocationRow = Pick<RevocationEntity, 'domain' | 'identifier' | 'revocationDate'>;

/** Where a page of the list ended. */
export type RevocationPosition = Pick<RevocationRow, 'revocationDate'> & {
  domain: string;
  identifier: string;
};

/** A revocation to write. */
export interface NewRevocation extends RevocationKey {
  /** Who revokes, and from where. */
  subject: string;
  clientId: string | null;
  address?: string | null;
  traceId?: string | null;
  /**
   * `reuse`: a refresh token was used twice, and the revocation ends its session. Audited only if it was not
   * over before.
   */
  because?: 'request' | 'reuse';
  /** True when the caller revokes its own token or session. Rows with false count when a caller who is no
   *  administrator is checked. */
  own?: boolean;
  /** The application whose quota it counts against, empty for none; null: it counts against none. */
  countedClient?: string | null;
  /** Ends sign-ins of the user that are under way, because it may be about what they rest on. */
  interrupts?: boolean;
  /**
   * When the one token that it covers expires, if that is known. Else the row is kept for 366 days, or for
   * sessions for a day.
   */
  expiresAt?: Date | null;
}

/** A token of this service, as its rows tell. */
export interface IssuedToken {
  subject: string | null;
  /** From when on it is valid nowhere, clocks that differ by an hour included. */
  expiresAt: Date;
}

/**
 * SQL: the newest revocation (`at`, null if none) of the person, internal user, subject and application that
 * expressions name as texts or nulls: it covers tokens issued up to its second. For use as a sub-query.
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
  // OFFSET 0 has the look-ups made once.
  return `SELECT ${newest('revocation_date', names)} AS at OFFSET 0`;
}

/** SQL: when the newest revocation was set of the person, internal user or subject that ends sign-ins under
 *  way; null if none. */
export function newestInterruption(personId: string, userId: string, subject: string): string {
  return newest('interrupts_at', { 'svc-personid': personId, 'internal-legacy': userId, sub: subject });
}

/** One look-up by the primary key for each name, whatever the table was like when the plan was made. */
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

/** SQL: whether the application that an expression names as text was revoked at or after an instant. */
export function isApplicationRevokedSince(applicationKey: string, instant: string): string {
  return `coalesce((SELECT revocation_date >= ${instant} FROM auth.revocations
    WHERE domain = 'client_id' AND identifier = ${applicationKey}), false)`;
}

/**
 * SQL: whether the token or session that an expression names as text is revoked. With a limit it is looked up
 * in the index each time; EXISTS may become a scan.
 */
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
// Hand-written SQL: the position is compared as a row. With minDate beside it PostgreSQL would begin there
// and pass over every earlier page.
const LIST_FROM = `
  SELECT ${COLUMNS} FROM auth.revocations
  WHERE (revocation_date, domain, identifier) > ($2, $3, $4) AND domain = ANY ($5) ${ORDER} $1`;

/**
 * How long a session's revocation is kept: no access token of it lives longer than a day, and its refresh
 * tokens end with its family.
 */
export const SESSION_KEPT = `interval '25 hours'`;

// Hand-written SQL: atomic over the registry, its audit trail and the sessions. A session ends with the
// revocation of any of its refresh tokens. Dates are whole milliseconds, rounded down, so that none lies in
// the future of the clock that made it, unless that clock has gone back. greatest(): a transaction that began
// earlier but ends later must not set the date back.
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

// Run after the commit of PUT. It finds nothing to do while the second of the revocation lasts.
const RENEW_LATE = `
  UPDATE auth.revocations SET
    confirmed = false,
    revocation_date = present.at,
    interrupts_at = CASE WHEN $3::boolean THEN present.at ELSE interrupts_at END
  FROM (${REVOCATION_INSTANT}) AS present
  WHERE domain = $1 AND identifier = $2
    AND date_trunc('second', revocation_date) < date_trunc('second', present.at)
  RETURNING 1`;
/** How often a revocation is dated anew because its commit ended after the second of its date. */
const MAX_RENEWALS = 8;

const FIND_ISSUED: PreparedStatement = {
  name: 'find-issued-token',
  text: `SELECT subject,
      coalesce(refresh_expires_at, access_issued_at + $2 * interval '1 second') + interval '1 hour' AS "expiresAt"
    FROM auth.find_issued_token($1)`,
};

// Sign-ins that waited for a revoked second go through in the first half of the next. A repeated revocation
// waits for that half to pass. It avoids the last 100 ms of a second, because it might be committed in the
// next. Times are in milliseconds.
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

/** The revocation registry: reads, writes, and the SQL fragments by which other statements judge a token.
 *  `confirm-revocations.job`, `purge-revocations` and `revocation-quotas.repository` have statements of their
 *  own. */
@Injectable()
export class RevocationsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  async find(domain: RevocationDomain, identifier: string): Promise<RevocationRow | null> {
    const rows = await readPrepared<RevocationRow>(this.dataSource, FIND, [domain, identifier]);
    return rows[0] ?? null;
  }

  /** The token of this service that has this id, as long as its rows are kept. */
  async findIssued(tokenId: string): Promise<IssuedToken | null> {
    if (!isUuid(tokenId)) return null;
    const parameters = [tokenId, ACCESS_TOKEN_LIFETIME_SECONDS];
    const rows = await readPrepared<IssuedToken>(this.dataSource, FIND_ISSUED, parameters);
    return rows[0] ?? null;
  }

  /** What the clock that dates revocations says. */
  async present(): Promise<Date> {
    const [row] = await readPrepared<{ present: Date }>(this.dataSource, PRESENT, []);
    return row!.present;
  }

  /**
   * Revocations dated strictly after `minDate`, oldest first. A revocation that is renewed while a reader
   * pages moves ahead of the reader, never behind.
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
   * Revokes now, and audits it. Revoking a refresh token ends its session in the same statement. When this
   * resolves, the revocation covers every token that was issued before.
   * @throws {DatabaseUnavailableError} when commits take so long that this cannot be said
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
    if (isDated(domain)) await this.renewLate(domain, identifier, interrupts);
  }

  /**
   * A statement that issues tokens and does not see a revocation began before its commit, so its tokens are
   * dated no later than that. If the commit was still in the revocation's second, they are covered. Else the
   * revocation is dated anew, until a commit is fast enough.
   */
  private async renewLate(domain: string, identifier: string, interrupts: boolean): Promise<void> {
    for (let renewals = 0; renewals < MAX_RENEWALS; renewals += 1) {
      const [rows] = await this.dataSource.query<[unknown[], number]>(RENEW_LATE, [
        domain,
        identifier,
        interrupts,
      ]);
      if (rows.length === 0) return;
    }
    throw new DatabaseUnavailableError(
      'a revocation was written, but commits are too slow to say since when',
    );
  }

  /**
   * Waits as long as a repeated revocation has to wait so that sign-ins can pass between it and the one
   * before. At most a second.
   * @param names every name of whom it is about: they take turns as one
   */
  async awaitTurn(names: readonly RevocationKey[]): Promise<void> {
    const parameters = [names.map(({ domain }) => domain), names.map(({ identifier }) => identifier)];
    const [row] = await this.dataSource.query<{ delayMs: number }[]>(DELAY, parameters);
    if (row !== undefined && row.delayMs > 0) await wait(row.delayMs);
  }
}
