import { Inject, Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { batched, batchedWrites, listParameter, queryPrepared, readPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { Application } from '../applications/application';
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
import { NOTE_ISSUE } from './newest-issue';
import { ROTATION_SEEN_AT } from './recorded-snapshots';
import type { RefreshState } from './refresh-state';
import { PRUNED_AGE } from './session-bounds.repository';

/** An access token that is exchanged for another. */
export interface PresentedToken {
  tokenId: string;
  issuedAt: Date;
  sessionId: string | null;
  /** The asymmetric key that signed it; null: another kind of key did. */
  keyId: string | null;
}

/** What a new sign-in rests on. */
export interface Evidence {
  /** The database's time, in whole milliseconds: it was made then, or all of it was read after that. */
  at: Date;
  /**
   * It was made then, and is good for one issue. A revocation of the application covers it, as it does
   * tokens.
   */
  isCredential: boolean;
  /** The application's secrets that were live. */
  secretVersions: readonly number[];
}

/** A refresh token to issue, with its session. If the session exists, its personas and its date stay. */
export interface NewRefreshFamily {
  familyId: string;
  tokenId: string;
  subject: string;
  applicationKey: string;
  flow: string;
  personaLimit: number;
  /** Null: just now. */
  authTime: Date | null;
  lifetimeSeconds: number;
  /** No refresh token outlives its sign-in by more. */
  maxAgeSeconds: number;
}

/** Tokens to issue. */
export interface IssueRequest {
  identity: Pick<Identity, 'personId' | 'userId' | 'subject'>;
  applicationKey: string | null;
  presented: PresentedToken | null;
  /** Null: the presented token, which is judged by itself. */
  evidence: Evidence | null;
  /** Null: no refresh token. */
  family: NewRefreshFamily | null;
  audit: IssueAuditRow;
}

/** When the tokens count as issued, or why there are none. */
export interface Issue {
  issuedAt: Date;
  /** The token presented for them has been revoked meanwhile. */
  presentedRevoked: boolean;
  /** What the evidence says may be over: it is older than a revocation. */
  interrupted: boolean;
  /** The application is disabled, or not there any more. */
  applicationGone: boolean;
  /** Nothing is issued: how long to wait before asking again. */
  waitMs: number | null;
  /**
   * Of the refresh token; null when there is none: not asked for, the sign-in is too old, or its session has
   * more personas or enough refresh tokens.
   */
  refreshExpiresAt: Date | null;
}

/** What a refresh token says of itself. */
export interface RefreshTokenName {
  jti: string;
  /** Null: it is from before there were sessions, and only its row has it. */
  sessionId: string | null;
  issuedAt: Date;
}

/** A refresh token's row with its session and its successor. */
export interface RefreshSession extends RefreshState {
  jti: string;
  familyId: string;
  subject: string;
  applicationKey: string;
  personaLimit: number;
  successorJti: string | null;
  successorIssuedAt: Date | null;
  successorExpiresAt: Date | null;
  /** Null when the application has gone or is disabled. */
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

/** A refresh token that was replaced; its successor counts as issued then. */
export interface Rotated {
  issuedAt: Date;
  expiresAt: Date;
}

// A request is one record: who asks, as revocations name them, what is asked for, and its audit row. Plain
// JSON costs less to read than jsonb.
const REVOCABLE_FIELDS = `"personId" text, "userId" text, sub text, "clientId" text`;
const NEWEST_REVOCATION = newestRevocation('r."personId"', 'r."userId"', 'r.sub', 'r."clientId"');

const NEWEST_REVOCATION_OF = newestRevocation('$1::text', '$2::text', '$3::text', '$4::text');

/** Refresh tokens of a session, used ones too, from which on its exchanges give access tokens only. */
const FULL_SESSION_TOKENS = 500;
/** The same for unused ones of the last hour. */
const FULL_HOUR_TOKENS = 30;

const FAMILY_FIELDS = `"familyId" uuid, "tokenId" uuid, subject text, "applicationKey" text, flow text, "personaLimit" integer,
    "authTime" timestamptz, "lifetimeSeconds" double precision, "maxAgeSeconds" double precision`;

/** SQL: when a refresh token expires that is issued at `issued_at` in a session that began at `authTime`. */
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
        SELECT true FROM auth.refresh_token t WHERE t.family_id = f."familyId" ORDER BY t.issued_at DESC OFFSET ${String(FULL_SESSION_TOKENS - 1)} LIMIT 1
      ), (
        SELECT true FROM auth.refresh_token t
        WHERE t.family_id = f."familyId" AND t.issued_at > now() - interval '1 hour' AND t.rotated_at IS NULL
        ORDER BY t.issued_at DESC OFFSET ${String(FULL_HOUR_TOKENS - 1)} LIMIT 1
      )) AS is_full
      FROM auth.refresh_family WHERE family_id = f."familyId" LIMIT 1
    ) AS known ON true
    WHERE ${ADMITTED} AND json_typeof(verdict.family) = 'object'
      AND ("authTime" IS NULL OR "authTime" + "maxAgeSeconds" * interval '1 second' > issued_at)
  ), family AS (
    -- The update changes nothing. It returns the row that another request has made since this statement began.
    INSERT INTO auth.refresh_family AS made (family_id, subject, person_id, user_id, application_key, flow, persona_limit, auth_time)
    SELECT DISTINCT ON ("familyId") "familyId", subject, person_id, user_id, "applicationKey", flow, "personaLimit",
      coalesce("authTime", issued_at)
    FROM opened WHERE persona_limit IS NULL ORDER BY "familyId", position
    ON CONFLICT (family_id) DO UPDATE SET persona_limit = made.persona_limit
    RETURNING family_id, persona_limit
  ), refreshable AS MATERIALIZED (
    -- A session keeps the personas that it began with: one that has more would give them to whoever refreshes an exchanged token.
    SELECT opened.* FROM opened LEFT JOIN family ON family.family_id = opened."familyId"
    -- One that is full gets none: unused tokens live as long as their session.
    WHERE coalesce(opened.persona_limit, family.persona_limit) & ~opened."personaLimit" = 0 AND opened.is_full IS NULL
  ), token AS (
    INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at)
    SELECT "tokenId", "familyId", issued_at, expires_at FROM refreshable
  ), noted AS MATERIALIZED (${NOTE_ISSUE}
  ), audited AS (${insertIssueAuditsOf('verdict', ADMITTED)})
  SELECT position, verdict.issued_at AS "issuedAt", presented_revoked AS "presentedRevoked", interrupted,
    application_gone AS "applicationGone", wait_ms AS "waitMs", expires_at AS "refreshExpiresAt"
  FROM verdict LEFT JOIN refreshable USING (position) CROSS JOIN (SELECT count(*) FROM noted) AS noted`,
};

const FAMILY_REVOKED_AT = `
    coalesce(f.revoked_at, (SELECT revocation_date FROM auth.revocations WHERE domain = 'sid' AND identifier = f.family_id::text))`;

const USER_REVOKED_AT = newestRevocation(
  'f.person_id::text',
  'f.user_id::text',
  'f.subject',
  'f.application_key',
);

/** SQL: the application of family `f`, or null. */
const APPLICATION_OF_FAMILY = `
    SELECT json_build_object('applicationKey', application_key, 'allowedPersonas', allowed_personas, 'allowRefresh', allow_refresh,
      'allowAdministrators', allow_administrators, 'allowedFlows', allowed_flows, 'allowedSubjects', allowed_subjects,
      'confidential', confidential) AS application
    FROM auth.application WHERE application_key = f.application_key AND enabled LIMIT 1`;

// Hand-written SQL: hot and batched. LIMIT 1 has each row looked up by itself: a plan that was made while the
// tables were small joins them from end to end. The tokens that the session got and used in the last hour are
// counted for unused tokens only, from the newest one back, and as far as the limit $2. Those of exchanges
// that nobody has used are not counted.
const FIND_REFRESH_SESSIONS: PreparedStatement = {
  name: 'find-refresh-sessions',
  text: `
  SELECT t.jti, t.family_id AS "familyId", f.subject,
    f.application_key AS "applicationKey", f.persona_limit AS "personaLimit",
    now() AS now, t.issued_at AS "issuedAt", f.auth_time AS "authTime", t.rotated_at AS "rotatedAt",
    ${ROTATION_SEEN_AT} AS "rotationSeenAt",
    t.successor_jti AS "successorJti", s.issued_at AS "successorIssuedAt", s.expires_at AS "successorExpiresAt",
    s.rotated_at AS "successorRotatedAt",
    ${FAMILY_REVOKED_AT} AS "familyRevokedAt",
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
// issued at or before the pruned instant was used; when is not known any more, but longer ago than any
// window.
const FIND_PRUNED = `
  SELECT $1::uuid AS jti, f.family_id AS "familyId", f.subject, f.application_key AS "applicationKey",
    f.persona_limit AS "personaLimit", now() AS now, $3::timestamptz AS "issuedAt", f.auth_time AS "authTime",
    used.at AS "rotatedAt", used.at AS "rotationSeenAt", NULL AS "successorJti", NULL AS "successorIssuedAt",
    NULL AS "successorExpiresAt", NULL AS "successorRotatedAt",
    ${FAMILY_REVOKED_AT} AS "familyRevokedAt",
    (${USER_REVOKED_AT}) AS "userRevokedAt",
    NULL AS "hourFullSince", a.application
  FROM auth.refresh_family f
  CROSS JOIN LATERAL (SELECT least(f.pruned_until, now() - ${PRUNED_AGE}) AS at) AS used
  LEFT JOIN LATERAL (${APPLICATION_OF_FAMILY}) AS a ON true
  WHERE f.family_id = $2::uuid AND $3::timestamptz <= f.pruned_until`;

// Hand-written SQL: hot, batched, and atomic over three tables. One UPDATE decides which of several
// concurrent requests rotates. The others find rotated_at set, even if they waited for the row, and change
// nothing; of two in one statement, the row takes the successor of one. The rows are found by $2: a plan that
// was made for a small table joins the request with all of a large one.
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
 * A batch of tokens a day after expiry, so that one is still known while any clock could accept it. A family
 * goes with its last token: looked for by age, every session that lives long would be looked at every time.
 * By one replica at a time: two could wait for tokens of one family crosswise. Arrays have the rows looked up
 * one by one, whatever the statistics say.
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

/** Refresh tokens and the families they form. Calls that come at the same moment share a statement. */
@Injectable()
export class RefreshSessionsRepository {
  /**
   * Dates and audits an issue and opens the refresh family that it wants, in one round trip. A revoked
   * presented token opens nothing, nor does a request that has to wait.
   */
  readonly issue: (request: IssueRequest) => Promise<Issue>;
  /** The session behind a refresh token with a row, or null. */
  private readonly findStored: (jti: string) => Promise<RefreshSession | null>;
  /**
   * Replaces a refresh token by its successor, and audits it. Null, and nothing changed, when it is no longer
   * the one to rotate: another request came first, or it was revoked in between.
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
   * The session behind a genuine refresh token, or null when it is not known (any more). Of a pruned token it
   * says that it was used.
   */
  async find({ jti, sessionId, issuedAt }: RefreshTokenName): Promise<RefreshSession | null> {
    const stored = await this.findStored(jti);
    if (stored !== null || sessionId === null) return stored;
    const [pruned] = await this.dataSource.query<RefreshSession[]>(FIND_PRUNED, [jti, sessionId, issuedAt]);
    return pruned ?? null;
  }

  /** The newest revocation of a user or an application, or null. */
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
          // What is left out reads as null, and costs less.
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
      // Makes it unlikely that two replicas lock the same rows crosswise. A joined UPDATE promises no order:
      // of a statement
      // that PostgreSQL ends to break a deadlock each rotation is tried by itself.
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
