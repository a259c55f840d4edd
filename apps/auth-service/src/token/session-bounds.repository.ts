import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { PURGE_BATCH } from '../purge-batch';
import { SESSION_KEPT } from '../revocations/revocations.repository';
import { ROTATION_SEEN_AT, WINDOW } from './recorded-snapshots';

/**
 * How long ago a used refresh token was issued at least when it is pruned. The tokens of the last hour are
 * counted.
 */
export const PRUNED_AGE = `interval '1 hour'`;

/** Refresh tokens of a session that are never pruned, the newest. */
const KEPT_TOKENS = 100;
/** A session with more is pruned: not after each refresh. */
const MAX_TOKENS = 200;
/** Sessions that one statement displaces. */
const DISPLACED_SESSIONS = 100;
/** Sessions whose tokens one statement removes. */
const REMOVED_SESSIONS = 100;

/** The sessions of one user in one application. */
export interface SessionsOfUser {
  subject: string;
  applicationKey: string;
}

/** How many rows a bounded step has removed, or sessions displaced; `isMore`: another one may have something
 *  to do. */
export interface BoundedStep {
  count: number;
  isMore: boolean;
}

/** A step of the pruning of a session. */
interface PruningStep extends BoundedStep {
  /** When the youngest token that it looked at was issued; null: there was none. */
  upTo: string | null;
}

/** SQL: the use of refresh token `t` is so old that nobody may present it again. The oldest snapshot
 *  settles nearly all tokens. */
const IS_OVER = `
  t.rotated_at < now() - ${WINDOW} AND CASE
    WHEN t.rotated_in < (
      SELECT min(pg_snapshot_xmin(snapshot::pg_snapshot))::text::bigint FROM auth.recorded_snapshot WHERE recorded_at <= now() - ${WINDOW}
    ) THEN true
    ELSE ${ROTATION_SEEN_AT} < now() - ${WINDOW} END`;

const FIND_OVERSIZED_SESSIONS = `
  SELECT asked.family_id AS "familyId" FROM unnest($1::uuid[]) AS asked (family_id)
  CROSS JOIN LATERAL (
    SELECT 1 FROM auth.refresh_token t WHERE t.family_id = asked.family_id ORDER BY t.issued_at DESC OFFSET ${String(MAX_TOKENS)} LIMIT 1
  ) AS surplus`;

// Hand-written SQL: atomic over the tokens and their session. The first step of a run begins with the oldest
// token, as one that was passed over unused may be used now; each further one where the last one ended, and
// looks at a batch of tokens, used or not. Only tokens whose use others could see before the window are
// removed. One replica at a time has the session; tokens that another statement has locked are passed over
// and stay. Compared as rows, whatever the statistics say: a plan for a session of few tokens would sort all
// of many in each step.
const PRUNE_SESSION = `
  WITH session AS MATERIALIZED (
    SELECT coalesce($2::timestamptz, '-infinity') AS start FROM auth.refresh_family WHERE family_id = $1 FOR NO KEY UPDATE SKIP LOCKED
  ), kept AS MATERIALIZED (
    SELECT issued_at FROM auth.refresh_token WHERE family_id = $1 ORDER BY issued_at DESC OFFSET ${String(KEPT_TOKENS - 1)} LIMIT 1
  ), batch AS MATERIALIZED (
    SELECT t.ctid, t.issued_at, ${IS_OVER} AS is_over
    FROM auth.refresh_token t
    WHERE (t.family_id, t.issued_at) >= ($1::uuid, (SELECT start FROM session))
      AND (t.family_id, t.issued_at) < ($1::uuid, (SELECT least(issued_at, now() - ${PRUNED_AGE}) FROM kept))
    ORDER BY t.family_id, t.issued_at LIMIT ${String(PURGE_BATCH)} FOR UPDATE OF t SKIP LOCKED
  ), removed AS (
    DELETE FROM auth.refresh_token WHERE ctid = ANY (ARRAY(SELECT ctid FROM batch WHERE is_over)) RETURNING 1
  ), noted AS (
    UPDATE auth.refresh_family SET pruned_until = greatest(pruned_until, (SELECT max(issued_at) FROM batch))
    WHERE family_id = $1 AND EXISTS (SELECT FROM batch)
  ), counted AS (
    SELECT (SELECT count(*) FROM removed)::int AS count, (SELECT count(*) FROM batch) = ${String(PURGE_BATCH)} AS is_full
  )
  SELECT count, (SELECT max(issued_at) FROM batch)::text AS "upTo",
    is_full AND (count > 0 OR (SELECT max(issued_at) FROM batch) > (SELECT start FROM session)) AS "isMore"
  FROM counted`;

const FIND_USERS_WITH_SURPLUS = `
  SELECT asked.subject, asked.application_key AS "applicationKey"
  FROM unnest($1::text[], $2::text[]) AS asked (subject, application_key)
  CROSS JOIN LATERAL (
    SELECT 1 FROM auth.refresh_family f
    WHERE f.subject = asked.subject AND f.application_key = asked.application_key AND f.revoked_at IS NULL
    ORDER BY f.created_at DESC, f.family_id DESC OFFSET $3 LIMIT 1
  ) AS surplus`;

// Hand-written SQL: atomic over the sessions and their audit trail. The row stays: while one of its access
// tokens lives, it says that the session has ended.
const DISPLACE_SESSIONS = `
  WITH surplus AS MATERIALIZED (
    SELECT family_id FROM auth.refresh_family WHERE subject = $1 AND application_key = $2 AND revoked_at IS NULL
    ORDER BY created_at DESC, family_id DESC OFFSET $3 LIMIT ${String(DISPLACED_SESSIONS)}
  ), mine AS MATERIALIZED (
    SELECT family_id FROM auth.refresh_family WHERE family_id = ANY (ARRAY(SELECT family_id FROM surplus)) AND revoked_at IS NULL
    FOR NO KEY UPDATE SKIP LOCKED
  ), ended AS (
    UPDATE auth.refresh_family SET revoked_at = now(), revoked_because = 'displaced'
    WHERE family_id = ANY (ARRAY(SELECT family_id FROM mine)) RETURNING family_id
  ), audited AS (
    INSERT INTO auth.revocation_audit (domain, identifier, because, revoked_by_subject, revoked_by_client)
    SELECT 'refresh-family', family_id::text, 'displaced', $1, $2 FROM ended
  )
  SELECT count(*)::int AS count, count(*) > 0 AS "isMore" FROM ended`;

/** SQL: no access token of session `f`, which has ended, can live. */
const IS_LONG_ENDED = `f.revoked_at < now() - ${SESSION_KEPT}`;

const FIND_USERS_OF_ENDED = `
  SELECT asked.subject, asked.application_key AS "applicationKey"
  FROM unnest($1::text[], $2::text[]) AS asked (subject, application_key)
  CROSS JOIN LATERAL (
    SELECT revoked_at FROM auth.refresh_family f
    WHERE f.subject = asked.subject AND f.application_key = asked.application_key AND f.revoked_at IS NOT NULL
    ORDER BY f.revoked_at DESC OFFSET $3 LIMIT 1
  ) AS surplus
  CROSS JOIN LATERAL (
    SELECT 1 FROM auth.refresh_family f
    WHERE f.subject = asked.subject AND f.application_key = asked.application_key
      AND f.revoked_at <= surplus.revoked_at AND ${IS_LONG_ENDED}
    ORDER BY f.revoked_at LIMIT 1
  ) AS removable`;

// Hand-written SQL: atomic over the tokens and their sessions. A session goes in the step after the one that
// removed its last token.
const REMOVE_ENDED_SESSIONS = `
  WITH surplus AS MATERIALIZED (
    SELECT revoked_at FROM auth.refresh_family WHERE subject = $1 AND application_key = $2 AND revoked_at IS NOT NULL
    ORDER BY revoked_at DESC OFFSET $3 LIMIT 1
  ), mine AS MATERIALIZED (
    SELECT family_id FROM auth.refresh_family f
    WHERE subject = $1 AND application_key = $2 AND revoked_at <= (SELECT revoked_at FROM surplus) AND ${IS_LONG_ENDED}
    ORDER BY revoked_at LIMIT ${String(REMOVED_SESSIONS)} FOR UPDATE SKIP LOCKED
  ), batch AS MATERIALIZED (
    SELECT t.ctid FROM auth.refresh_token t
    WHERE t.family_id = ANY (ARRAY(SELECT family_id FROM mine)) LIMIT ${String(PURGE_BATCH)} FOR UPDATE OF t SKIP LOCKED
  ), removed AS (
    DELETE FROM auth.refresh_token WHERE ctid = ANY (ARRAY(SELECT ctid FROM batch)) RETURNING 1
  ), gone AS (
    DELETE FROM auth.refresh_family f WHERE family_id = ANY (ARRAY(SELECT family_id FROM mine))
      AND (SELECT true FROM auth.refresh_token t WHERE t.family_id = f.family_id ORDER BY t.issued_at LIMIT 1) IS NULL RETURNING 1
  )
  SELECT (SELECT count(*) FROM gone)::int AS count, (SELECT count(*) FROM removed) + (SELECT count(*) FROM gone) > 0 AS "isMore"`;

/** Keeps what one user can make grow within bounds, in steps of one statement each. */
@Injectable()
export class SessionBoundsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Those of the sessions that have so many refresh tokens that used ones are pruned. */
  async findOversizedSessions(familyIds: readonly string[]): Promise<string[]> {
    const rows = await this.dataSource.query<{ familyId: string }[]>(FIND_OVERSIZED_SESSIONS, [familyIds]);
    return rows.map(({ familyId }) => familyId);
  }

  /** Removes used refresh tokens of a session, the oldest first. @param start where the step before ended;
   *  null: with the oldest */
  async pruneSession(familyId: string, start: string | null): Promise<PruningStep> {
    const [step] = await this.dataSource.query<PruningStep[]>(PRUNE_SESSION, [familyId, start]);
    return step!;
  }

  /** Those of the users that have more than `limit` sessions in the application that have not ended. */
  findUsersWithSurplus(users: readonly SessionsOfUser[], limit: number): Promise<SessionsOfUser[]> {
    return this.findUsers(FIND_USERS_WITH_SURPLUS, users, limit);
  }

  /** Ends the oldest sessions of a user in an application beyond `limit`, and audits it. */
  displaceSessions(user: SessionsOfUser, limit: number): Promise<BoundedStep> {
    return this.step(DISPLACE_SESSIONS, user, limit);
  }

  /** Those of the users that have sessions to remove by `removeEndedSessions`. */
  findUsersOfEnded(users: readonly SessionsOfUser[], limit: number): Promise<SessionsOfUser[]> {
    return this.findUsers(FIND_USERS_OF_ENDED, users, limit);
  }

  /** Removes ended sessions of a user in an application, but for the `limit` that ended last and those of
   *  which an access token may live. */
  removeEndedSessions(user: SessionsOfUser, limit: number): Promise<BoundedStep> {
    return this.step(REMOVE_ENDED_SESSIONS, user, limit);
  }

  private findUsers(
    statement: string,
    users: readonly SessionsOfUser[],
    limit: number,
  ): Promise<SessionsOfUser[]> {
    const subjects = users.map(({ subject }) => subject);
    const applicationKeys = users.map(({ applicationKey }) => applicationKey);
    return this.dataSource.query(statement, [subjects, applicationKeys, limit]);
  }

  private async step(
    statement: string,
    { subject, applicationKey }: SessionsOfUser,
    limit: number,
  ): Promise<BoundedStep> {
    const [step] = await this.dataSource.query<BoundedStep[]>(statement, [subject, applicationKey, limit]);
    return step!;
  }
}
