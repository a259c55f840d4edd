import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { DataSource } from 'typeorm';
import { PURGE_BATCH } from '../purge-batch';
import { SESSION_KEPT } from '../revocations/revocations.repository';
import { ROTATION_SEEN_AT, WINDOW } from './recorded-snapshots';

/**
 * Minimum age of a pruned refresh token, counted from its issue. Younger tokens are needed for the hourly
 * refresh limit.
 */
export const PRUNED_AGE = `interval '1 hour'`;

/** Number of the newest refresh tokens of a session that are never pruned. */
const KEPT_TOKENS = 100;
/**
 * Number of refresh tokens above which a session is pruned. Twice `KEPT_TOKENS`, so that not every refresh
 * prunes.
 */
const MAX_TOKENS = 200;
/** Maximum sessions that one statement ends. */
const DISPLACED_SESSIONS = 100;
/** Maximum sessions whose tokens one statement deletes. */
const REMOVED_SESSIONS = 100;

/** The sessions of one user in one application. */
export interface SessionsOfUser {
  subject: string;
  applicationKey: string;
}

/** The result of one bounded step. */
export interface BoundedStep {
  /** Rows that the step deleted, or sessions that it ended. */
  count: number;
  /** True if a further step may find more. */
  isMore: boolean;
}

/** The result of one step of pruning a session. */
interface PruningStep extends BoundedStep {
  /** Issue date of the newest token that the step read; null if it read none. */
  upTo: string | null;
}

/**
 * SQL: true if refresh token `t` was used so long ago that its grace window is over. For nearly all tokens
 * the oldest recorded snapshot decides, without the more expensive look-up.
 */
const IS_OVER = `
  t.rotated_at < now() - ${WINDOW} AND CASE
    WHEN t.rotated_in < (
      SELECT min(pg_snapshot_xmin(snapshot::pg_snapshot))::text::bigint FROM auth.recorded_snapshot WHERE recorded_at <= now() - ${WINDOW}
    ) THEN true
    ELSE ${ROTATION_SEEN_AT} < now() - ${WINDOW} END`;

const FIND_OVERSIZED_SESSIONS = `
  SELECT asked.family_id AS "sessionId" FROM unnest($1::uuid[]) AS asked (family_id)
  CROSS JOIN LATERAL (
    SELECT 1 FROM auth.refresh_token t WHERE t.family_id = asked.family_id ORDER BY t.issued_at DESC OFFSET ${String(MAX_TOKENS)} LIMIT 1
  ) AS surplus`;

// Hand-written SQL: atomic over the tokens and their session. The first step of a run starts at the oldest
// token, because a token that an earlier run skipped as unused may be used by now. Each further step
// continues where the last one ended. A step reads one batch of tokens, used or not, and deletes those whose
// grace window is over. The row lock admits one replica per session; tokens locked by another statement are
// skipped. The row comparison makes the planner read the index in order: a plan made for a session with few
// tokens would sort all tokens in every step.
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

// Hand-written SQL: atomic over the sessions and their audit trail. The session's row is kept, because it
// marks the session as ended while its access tokens are still unexpired.
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

/** SQL: true if session `f` ended so long ago that all of its access tokens have expired. */
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

// Hand-written SQL: atomic over the tokens and their sessions. A session's row is deleted in the step after
// the one that deleted its last token.
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

/** Bounds the rows that one user can create, in steps of one statement each. */
@Injectable()
export class SessionBoundsRepository {
  constructor(@InjectDataSource() private readonly dataSource: DataSource) {}

  /** Returns those of the sessions that have more than 200 refresh tokens. */
  async findOversizedSessions(sessionIds: readonly string[]): Promise<string[]> {
    const rows = await this.dataSource.query<{ sessionId: string }[]>(FIND_OVERSIZED_SESSIONS, [sessionIds]);
    return rows.map(({ sessionId }) => sessionId);
  }

  /**
   * Deletes used refresh tokens of a session, oldest first.
   * @param start `upTo` of the previous step; null starts at the oldest token
   */
  async pruneSession(sessionId: string, start: string | null): Promise<PruningStep> {
    const [step] = await this.dataSource.query<PruningStep[]>(PRUNE_SESSION, [sessionId, start]);
    return step!;
  }

  /** Returns those of the users that have more than `limit` live sessions in the application. */
  findUsersWithSurplus(users: readonly SessionsOfUser[], limit: number): Promise<SessionsOfUser[]> {
    return this.findUsers(FIND_USERS_WITH_SURPLUS, users, limit);
  }

  /** Ends a user's oldest live sessions in an application beyond the newest `limit`, and audits each. */
  displaceSessions(user: SessionsOfUser, limit: number): Promise<BoundedStep> {
    return this.step(DISPLACE_SESSIONS, user, limit);
  }

  /** Returns those of the users that have sessions for `removeEndedSessions` to delete. */
  findUsersOfEnded(users: readonly SessionsOfUser[], limit: number): Promise<SessionsOfUser[]> {
    return this.findUsers(FIND_USERS_OF_ENDED, users, limit);
  }

  /**
   * Deletes ended sessions of a user in an application. Keeps the `limit` sessions that ended last, and those
   * that may still have an unexpired access token.
   */
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
