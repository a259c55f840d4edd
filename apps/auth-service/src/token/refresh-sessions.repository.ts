import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { batched, batchedWrites, listParameter, queryPrepared, readPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { Application } from '../applications/application';
import { NOTE_ISSUE } from '../audit/newest-issue';
import { ISSUE_AUDIT_FIELDS, insertIssueAuditsOf } from '../audit/token-audit.repository';
import type { IssueAuditRow } from '../audit/token-audit.repository';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import type { Identity } from '../identity/identity';
import { PURGE_BATCH } from '../purge-batch';
import { canonicalIdentifier } from '../revocations/revocation';
import { isRevoked, newestRevocation } from '../revocations/revocations.repository';
import {
  ADMITTED,
  APPLICATION_GONE,
  INTERRUPTED,
  ISSUE_INSTANT,
  PRESENTED_REVOKED,
  WAIT_MS,
} from './issue-verdict';
import { ROTATION_SEEN_AT } from './recorded-snapshots';
import type { RefreshState } from './refresh-state';
import { PRUNED_AGE } from './session-bounds.repository';

/** An access token to exchange. */
export interface PresentedToken {
  tokenId: string;
  issuedAt: Date;
  sessionId: string | null;
  /** Id of the asymmetric key that signed the token; null for HS256. */
  keyId: string | null;
}

/** The evidence of a new sign-in: a single sign-on code, or the user and application data that were read. */
export interface Evidence {
  /**
   * The database's time in whole milliseconds at which a credential was created, or a time before any of the
   * data was read.
   */
  at: Date;
  /**
   * True for a credential, e.g. a code: created at `at` and valid for one issue. A later revocation of the
   * application invalidates it, as it does tokens.
   */
  isCredential: boolean;
  /** Versions of the application's secrets that were live when they were read. */
  secretVersions: readonly number[];
}

/**
 * A refresh token to issue, with its session. An existing session keeps its persona limit and `auth_time`.
 */
export interface NewRefreshFamily {
  sessionId: string;
  tokenId: string;
  subject: string;
  applicationKey: string;
  flow: string;
  personaLimit: number;
  /** Null: now. */
  authTime: Date | null;
  lifetimeSeconds: number;
  /** Maximum seconds from `authTime` to the expiry of any refresh token of the session. */
  maxAgeSeconds: number;
}

/** Tokens to issue. */
export interface IssueRequest {
  identity: Pick<Identity, 'personId' | 'userId' | 'subject'>;
  applicationKey: string | null;
  presented: PresentedToken | null;
  /** Null for an exchange, which is judged by `presented` instead. */
  evidence: Evidence | null;
  /** Null: no refresh token. */
  family: NewRefreshFamily | null;
  audit: IssueAuditRow;
}

/** The issue date of the tokens, or the reason why none were issued. */
export interface Issue {
  issuedAt: Date;
  /** The presented token has been revoked since it was verified. */
  presentedRevoked: boolean;
  /** A revocation set since `Evidence.at` may concern the evidence. */
  interrupted: boolean;
  /** The application has been disabled or deleted. */
  applicationGone: boolean;
  /** Milliseconds to wait before trying again, because nothing was issued; null if no wait is needed. */
  waitMs: number | null;
  /**
   * Expiry of the refresh token. Null if none was issued: not requested, the sign-in is too old, or the
   * session has more personas than this grant or too many refresh tokens.
   */
  refreshExpiresAt: Date | null;
}

/** The claims by which a refresh token is found. */
export interface RefreshTokenName {
  jti: string;
  /** Null in a token from a release without sessions; its row has the session. */
  sessionId: string | null;
  issuedAt: Date;
}

/** A refresh token's row with its session and its successor. */
export interface RefreshSession extends RefreshState {
  jti: string;
  sessionId: string;
  subject: string;
  applicationKey: string;
  personaLimit: number;
  successorJti: string | null;
  successorIssuedAt: Date | null;
  successorExpiresAt: Date | null;
  /** Null if the application is disabled or deleted. */
  application: Application | null;
}

/** A refresh token to replace. */
export interface Rotation {
  jti: string;
  successorJti: string;
  sessionId: string;
  applicationKey: string;
  lifetimeSeconds: number;
  maxAgeSeconds: number;
  identity: Pick<Identity, 'personId' | 'userId' | 'subject'>;
  audit: IssueAuditRow;
}

/** The issue date and expiry of the successor of a rotated refresh token. */
export interface Rotated {
  issuedAt: Date;
  expiresAt: Date;
}

// Each request is one JSON record: the names by which its user and application are revoked, the tokens to
// issue, and the audit row. json is cheaper to read than jsonb.
const REVOCABLE_FIELDS = `"personId" text, "userId" text, sub text, "clientId" text`;
const NEWEST_REVOCATION = newestRevocation('r."personId"', 'r."userId"', 'r.sub', 'r."clientId"');

const NEWEST_REVOCATION_OF = newestRevocation('$1::text', '$2::text', '$3::text', '$4::text');

/**
 * Number of refresh tokens of a session, used or not, from which on its exchanges issue access tokens only.
 */
const FULL_SESSION_TOKENS = 500;
/**
 * Number of unused refresh tokens, issued to a session in the last hour, from which on its exchanges issue
 * access tokens only.
 */
const FULL_HOUR_TOKENS = 30;

const FAMILY_FIELDS = `"sessionId" uuid, "tokenId" uuid, subject text, "applicationKey" text, flow text, "personaLimit" integer,
    "authTime" timestamptz, "lifetimeSeconds" double precision, "maxAgeSeconds" double precision`;

/** SQL: the expiry of a refresh token that is issued at `issued_at` in a session with this `authTime`. */
const expiresAt = (authTime: string): string =>
  `least(issued_at + "lifetimeSeconds" * interval '1 second', ${authTime} + "maxAgeSeconds" * interval '1 second')`;

// Hand-written SQL: hot, batched, and atomic over three tables.
const ISSUE: PreparedStatement = {
  name: 'begin-issues',
  text: `
  WITH verdict AS MATERIALIZED (
    SELECT r.*, ${ISSUE_INSTANT} AS issued_at, ${WAIT_MS} AS wait_ms, ${PRESENTED_REVOKED} AS presented_revoked,
      ${INTERRUPTED} AS interrupted, ${APPLICATION_GONE} AS application_gone
    FROM json_to_recordset($1::json) AS r(position integer, ${REVOCABLE_FIELDS}, "presentedTokenId" text, "presentedSessionId" uuid, "presentedKeyId" text,
      "presentedIssuedAt" timestamptz, "evidenceAt" timestamptz, "isCredential" boolean, "secretVersions" integer[], family json, ${ISSUE_AUDIT_FIELDS})
    CROSS JOIN LATERAL (${NEWEST_REVOCATION}) AS revoked
  ), opened AS MATERIALIZED (
    SELECT f.*, verdict.position, verdict.issued_at, verdict."personId"::bigint AS person_id, verdict."userId"::bigint AS user_id,
      ${expiresAt('coalesce("authTime", issued_at)')} AS expires_at, known.persona_limit, known.is_full
    FROM verdict, json_to_record(verdict.family) AS f(${FAMILY_FIELDS})
    LEFT JOIN LATERAL (
      SELECT persona_limit, coalesce((
        SELECT true FROM auth.refresh_token t WHERE t.family_id = f."sessionId" ORDER BY t.issued_at DESC OFFSET ${String(FULL_SESSION_TOKENS - 1)} LIMIT 1
      ), (
        SELECT true FROM auth.refresh_token t
        WHERE t.family_id = f."sessionId" AND t.issued_at > now() - interval '1 hour' AND t.rotated_at IS NULL
        ORDER BY t.issued_at DESC OFFSET ${String(FULL_HOUR_TOKENS - 1)} LIMIT 1
      )) AS is_full
      FROM auth.refresh_family WHERE family_id = f."sessionId" LIMIT 1
    ) AS known ON true
    WHERE ${ADMITTED} AND json_typeof(verdict.family) = 'object'
      AND ("authTime" IS NULL OR "authTime" + "maxAgeSeconds" * interval '1 second' > issued_at)
  ), family AS (
    -- DO UPDATE changes nothing. It makes RETURNING return a row that another request has inserted since this
    -- statement began.
    INSERT INTO auth.refresh_family AS made (family_id, subject, person_id, user_id, application_key, flow, persona_limit, auth_time)
    SELECT DISTINCT ON ("sessionId") "sessionId", subject, person_id, user_id, "applicationKey", flow, "personaLimit",
      coalesce("authTime", issued_at)
    FROM opened WHERE persona_limit IS NULL ORDER BY "sessionId", position
    ON CONFLICT (family_id) DO UPDATE SET persona_limit = made.persona_limit
    RETURNING family_id, persona_limit
  ), refreshable AS MATERIALIZED (
    -- A session keeps the personas of its sign-in. If it has more than this grant, a refresh token would restore
    -- them, so none is issued.
    SELECT opened.* FROM opened LEFT JOIN family ON family.family_id = opened."sessionId"
    -- A full session gets no further refresh token, because unused ones are not pruned.
    WHERE coalesce(opened.persona_limit, family.persona_limit) & ~opened."personaLimit" = 0 AND opened.is_full IS NULL
  ), token AS (
    INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at)
    SELECT "tokenId", "sessionId", issued_at, expires_at FROM refreshable
  ), noted AS MATERIALIZED (${NOTE_ISSUE}
  ), audited AS (${insertIssueAuditsOf('verdict', ADMITTED)})
  SELECT position, verdict.issued_at AS "issuedAt", presented_revoked AS "presentedRevoked", interrupted,
    application_gone AS "applicationGone", wait_ms AS "waitMs", expires_at AS "refreshExpiresAt"
  FROM verdict LEFT JOIN refreshable USING (position) CROSS JOIN (SELECT count(*) FROM noted) AS noted`,
};

const SESSION_REVOKED_AT = `
    coalesce(f.revoked_at, (SELECT revocation_date FROM auth.revocations WHERE domain = 'sid' AND identifier = f.family_id::text))`;

const USER_REVOKED_AT = newestRevocation(
  'f.person_id::text',
  'f.user_id::text',
  'f.subject',
  'f.application_key',
);

/** SQL: the enabled application of family `f`, or no row. */
const APPLICATION_OF_FAMILY = `
    SELECT json_build_object('applicationKey', application_key, 'allowedPersonas', allowed_personas, 'allowRefresh', allow_refresh,
      'allowAdministrators', allow_administrators, 'allowedFlows', allowed_flows, 'allowedSubjects', allowed_subjects,
      'confidential', confidential) AS application
    FROM auth.application WHERE application_key = f.application_key AND enabled LIMIT 1`;

// Hand-written SQL: hot and batched. LIMIT 1 forces an index look-up per row; a plan made while the tables
// were small would scan them. `hourFullSince` is computed only if token `t` is unused. It is the issue date
// of the $2-th newest used token among those that the session got in the last hour; null if there are fewer.
// Unused tokens, e.g. of exchanges, do not count.
const FIND_REFRESH_SESSIONS: PreparedStatement = {
  name: 'find-refresh-sessions',
  text: `
  SELECT t.jti, t.family_id AS "sessionId", f.subject,
    f.application_key AS "applicationKey", f.persona_limit AS "personaLimit",
    now() AS now, t.issued_at AS "issuedAt", f.auth_time AS "authTime", t.rotated_at AS "rotatedAt",
    ${ROTATION_SEEN_AT} AS "rotationSeenAt",
    t.successor_jti AS "successorJti", s.issued_at AS "successorIssuedAt", s.expires_at AS "successorExpiresAt",
    s.rotated_at AS "successorRotatedAt",
    ${SESSION_REVOKED_AT} AS "sessionRevokedAt",
    (${USER_REVOKED_AT}) AS "userRevokedAt",
    CASE WHEN t.rotated_at IS NULL AND $2::integer > 0 THEN (
      SELECT issued_at FROM auth.refresh_token recent
      WHERE recent.family_id = t.family_id AND recent.issued_at > now() - interval '1 hour' AND recent.rotated_at IS NOT NULL
      ORDER BY recent.issued_at DESC OFFSET greatest($2::integer - 1, 0) LIMIT 1
    ) END AS "hourFullSince",
    a.application
  FROM unnest(${listParameter(1, 'uuid')}) AS asked (jti)
  CROSS JOIN LATERAL (SELECT * FROM auth.refresh_token WHERE jti = asked.jti LIMIT 1) AS t
  CROSS JOIN LATERAL (SELECT * FROM auth.refresh_family WHERE family_id = t.family_id LIMIT 1) AS f
  LEFT JOIN LATERAL (SELECT issued_at, expires_at, rotated_at FROM auth.refresh_token WHERE jti = t.successor_jti LIMIT 1) AS s ON true
  LEFT JOIN LATERAL (${APPLICATION_OF_FAMILY}) AS a ON true`,
};

// Hand-written SQL: atomic over the session and its revocations. A genuine token without a row that was
// issued at or before `pruned_until` was used. The time of its use is no longer known, but lies before the
// grace window.
const FIND_PRUNED = `
  SELECT $1::uuid AS jti, f.family_id AS "sessionId", f.subject, f.application_key AS "applicationKey",
    f.persona_limit AS "personaLimit", now() AS now, $3::timestamptz AS "issuedAt", f.auth_time AS "authTime",
    used.at AS "rotatedAt", used.at AS "rotationSeenAt", NULL AS "successorJti", NULL AS "successorIssuedAt",
    NULL AS "successorExpiresAt", NULL AS "successorRotatedAt",
    ${SESSION_REVOKED_AT} AS "sessionRevokedAt",
    (${USER_REVOKED_AT}) AS "userRevokedAt",
    NULL AS "hourFullSince", a.application
  FROM auth.refresh_family f
  CROSS JOIN LATERAL (SELECT least(f.pruned_until, now() - ${PRUNED_AGE}) AS at) AS used
  LEFT JOIN LATERAL (${APPLICATION_OF_FAMILY}) AS a ON true
  WHERE f.family_id = $2::uuid AND $3::timestamptz <= f.pruned_until`;

// Hand-written SQL: hot, batched, and atomic over three tables. One UPDATE decides which of several
// concurrent requests rotates a token. The others find rotated_at set, even if they waited for the row lock,
// and change nothing. If one statement holds two requests for a token, one successor is stored. $2 repeats
// the ids so that the rows are found by index; a plan made for a small table would join the requests with the
// whole table.
const ROTATE: PreparedStatement = {
  name: 'rotate-refresh-tokens',
  text: `
  WITH request AS MATERIALIZED (
    SELECT r.*, revoked.at AS revoked_at, ${ISSUE_INSTANT} AS issued_at,
      ${isRevoked('sid', 'r."sessionId"')} AS session_revoked
    FROM json_to_recordset($1::json) AS r(jti uuid, "successorJti" uuid, "sessionId" text, "lifetimeSeconds" double precision,
      "maxAgeSeconds" double precision, ${REVOCABLE_FIELDS}, ${ISSUE_AUDIT_FIELDS})
    CROSS JOIN LATERAL (${NEWEST_REVOCATION}) AS revoked
  ), rotated AS (
    UPDATE auth.refresh_token t SET rotated_at = now(), rotated_in = pg_current_xact_id()::text::bigint, successor_jti = r."successorJti"
    FROM request r, auth.refresh_family f
    WHERE t.jti = ANY ($2::uuid[]) AND t.jti = r.jti AND t.rotated_at IS NULL AND f.family_id = t.family_id AND f.revoked_at IS NULL
      AND NOT r.session_revoked
      AND (r.revoked_at IS NULL OR date_trunc('second', t.issued_at) > date_trunc('second', r.revoked_at))
    RETURNING t.family_id, t.successor_jti, f.auth_time
  ), done AS (
    SELECT request.*, rotated.family_id, rotated.auth_time FROM rotated JOIN request ON request."successorJti" = rotated.successor_jti
  ), noted AS MATERIALIZED (${NOTE_ISSUE}
  ), audited AS (${insertIssueAuditsOf('done')})
  INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at)
  SELECT "successorJti", family_id, issued_at, ${expiresAt('auth_time')} FROM done CROSS JOIN (SELECT count(*) FROM noted) AS noted
  RETURNING jti AS "successorJti", issued_at AS "issuedAt", expires_at AS "expiresAt"`,
};

/**
 * SQL: deletes a batch of refresh tokens that expired more than a day ago, so that a token is known as long
 * as any clock may accept it. A family is deleted with its last token; finding families by age would read
 * every long-lived session each time. The advisory lock admits one replica at a time, because two could
 * deadlock on the tokens of one family. The arrays force index look-ups whatever the planner's statistics
 * are.
 */
export const PURGE_REFRESH_SESSIONS = `
  WITH turn AS MATERIALIZED (
    SELECT pg_try_advisory_xact_lock(hashtext('auth.refresh_token'), hashtext('purge')) AS mine
  ), batch AS MATERIALIZED (
    SELECT ctid, family_id FROM auth.refresh_token
    WHERE (SELECT mine FROM turn) AND expires_at < now() - interval '1 day' ORDER BY expires_at LIMIT ${String(PURGE_BATCH)}
  ), removed AS (
    DELETE FROM auth.refresh_token WHERE ctid = ANY (ARRAY(SELECT ctid FROM batch)) RETURNING 1
  ), ended AS (
    DELETE FROM auth.refresh_family f WHERE family_id = ANY (ARRAY(SELECT DISTINCT family_id FROM batch))
      AND (SELECT count(*) FROM auth.refresh_token t
        WHERE t.family_id = f.family_id AND t.expires_at >= now() - interval '1 day') = 0
  )
  SELECT count(*)::int AS removed FROM removed`;

/** Refresh tokens and their families. Concurrent calls of a method share a statement. */
@Injectable()
export class RefreshSessionsRepository {
  /**
   * Dates and audits an issue, and writes its refresh token and family, in one round trip. Writes nothing if
   * the issue is refused or has to wait.
   */
  readonly issue: (request: IssueRequest) => Promise<Issue>;
  /** Returns the session behind a refresh token that has a row, or null. */
  private readonly findStored: (jti: string) => Promise<RefreshSession | null>;
  /**
   * Replaces a refresh token by its successor, and audits it. Returns null and changes nothing if another
   * request has rotated the token first, or if it has been revoked since it was read.
   */
  readonly rotate: (rotation: Rotation) => Promise<Rotated | null>;

  constructor(
    @InjectDataSource() private readonly dataSource: DataSource,
    @Inject(AUTH_CONFIG) private readonly config: Pick<AuthConfig, 'REFRESH_TOKENS_PER_HOUR'>,
  ) {
    this.issue = batchedWrites(dataSource, (requests) => this.issueAll(requests));
    this.findStored = batched((jtis) => this.findAll(jtis));
    this.rotate = batchedWrites(dataSource, (rotations) => this.rotateAll(rotations));
  }

  /**
   * Returns the session behind a genuine refresh token, or null if the token is unknown. A pruned token is
   * returned as used.
   */
  async find({ jti, sessionId, issuedAt }: RefreshTokenName): Promise<RefreshSession | null> {
    const stored = await this.findStored(jti);
    if (stored !== null || sessionId === null) return stored;
    const [pruned] = await this.dataSource.query<RefreshSession[]>(FIND_PRUNED, [jti, sessionId, issuedAt]);
    return pruned ?? null;
  }

  /** Returns the date of the newest revocation of the user or the application, or null. */
  async newestRevocation(identity: IssueRequest['identity'], applicationKey: string): Promise<Date | null> {
    const { personId, userId, subject } = identity;
    const parameters = [personId, userId, subject, applicationKey];
    const [row] = await this.dataSource.query<{ at: Date | null }[]>(NEWEST_REVOCATION_OF, parameters);
    return row?.at ?? null;
  }

  private async issueAll(requests: readonly IssueRequest[]): Promise<Issue[]> {
    const rows = await queryPrepared<Issue & { position: number }>(this.dataSource, ISSUE, [
      JSON.stringify(
        requests.map(({ identity, applicationKey, presented, evidence, family, audit }, position) => ({
          position,
          ...revocableOf(identity, applicationKey),
          presentedTokenId: presented === null ? undefined : canonicalIdentifier('jti', presented.tokenId),
          presentedSessionId: presented?.sessionId,
          presentedKeyId: presented?.keyId ?? undefined,
          presentedIssuedAt: presented?.issuedAt,
          evidenceAt: evidence?.at,
          isCredential: evidence?.isCredential,
          secretVersions: evidence?.secretVersions,
          // An omitted member reads as null and is cheaper.
          family: family ?? undefined,
          ...audit,
        })),
      ),
    ]);
    return rows.toSorted((one, other) => one.position - other.position);
  }

  private async findAll(jtis: readonly string[]): Promise<(RefreshSession | null)[]> {
    const rows = await readPrepared<RefreshSession>(this.dataSource, FIND_REFRESH_SESSIONS, [
      jtis,
      this.config.REFRESH_TOKENS_PER_HOUR,
    ]);
    const byJti = new Map(rows.map((row) => [row.jti, row]));
    return jtis.map((jti) => byJti.get(jti.toLowerCase()) ?? null);
  }

  private async rotateAll(rotations: readonly Rotation[]): Promise<(Rotated | null)[]> {
    const requests = rotations
      .map(({ identity, applicationKey, audit, ...rest }) => ({
        ...rest,
        ...revocableOf(identity, applicationKey),
        ...audit,
      }))
      // The order makes a deadlock between two replicas unlikely. A joined UPDATE guarantees no lock order,
      // so `batchedWrites` retries each rotation separately after a deadlock.
      .toSorted((one, other) => (one.jti < other.jti ? -1 : 1));
    const rows = await queryPrepared<Rotated & { successorJti: string }>(this.dataSource, ROTATE, [
      JSON.stringify(requests),
      requests.map(({ jti }) => jti),
    ]);
    const done = new Map(rows.map(({ successorJti, ...rotated }) => [successorJti, rotated]));
    return rotations.map(({ successorJti }) => done.get(successorJti) ?? null);
  }
}

function revocableOf(
  { personId, userId, subject: sub }: IssueRequest['identity'],
  clientId: string | null,
): object {
  return { personId, userId, sub, clientId };
}
