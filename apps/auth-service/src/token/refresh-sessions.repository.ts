import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import { batched, listParameter, queryPrepared, readPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { Application } from '../applications/application';
import { ISSUE_AUDIT_FIELDS, insertIssueAuditsOf } from '../audit/token-audit.repository';
import type { IssueAuditRow } from '../audit/token-audit.repository';
import type { Identity } from '../identity/identity';
import { PURGE_BATCH } from '../purge-batch';
import { canonicalIdentifier } from '../revocations/revocation';
import { isRevoked, newestRevocation } from '../revocations/revocations.repository';
import { NOTE_ISSUE } from './newest-issue';
import { ROTATION_SEEN_AT } from './recorded-snapshots';
import type { RefreshState } from './refresh-state';

/** An access token that is exchanged for another. */
export interface PresentedToken {
  tokenId: string;
  issuedAt: Date;
  sessionId: string | null;
  /** The asymmetric key that signed it; null: another kind of key did. */
  keyId: string | null;
}

/** A refresh token to issue, with its session; what the session has already if it is there stays. */
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
  /** Null: no refresh token. */
  family: NewRefreshFamily | null;
  audit: IssueAuditRow;
}

/** When the tokens count as issued, and whether the token presented for them has been revoked meanwhile. */
export interface Issue {
  issuedAt: Date;
  presentedRevoked: boolean;
  /** Nothing is issued: how long to wait before asking again. */
  waitMs: number | null;
  /** The newest revocation of the user or application. */
  revokedAt: Date | null;
  /** Of the refresh token; null when there is none: not asked for, or the sign-in is too old. */
  refreshExpiresAt: Date | null;
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

// A request is one record: who asks, as revocations name them, what is asked for, and its audit row. Plain JSON costs less to read than jsonb.
const REVOCABLE_FIELDS = `"personId" text, "userId" text, sub text, "clientId" text`;
const NEWEST_REVOCATION = newestRevocation('r."personId"', 'r."userId"', 'r.sub', 'r."clientId"');

const NEWEST_REVOCATION_OF = newestRevocation('$1::text', '$2::text', '$3::text', '$4::text');

/** SQL: the `iat` of a token issued now. The database's clock decides, as it dates the revocations too. */
const ISSUE_INSTANT = `date_trunc('second', now())`;

/** SQL: null, or how long to wait until the second of the newest revocation, `revoked.at`, is over: it covers what is issued in it. Tokens are
 *  never dated ahead: the next revocation, perhaps in this very second, would miss them. */
const WAIT_MS = `
  CASE WHEN date_trunc('second', revoked.at) >= ${ISSUE_INSTANT}
    THEN extract(epoch FROM date_trunc('second', revoked.at) + interval '1 second' - now())::float8 * 1000 END`;

// The presented token is judged here again, by the rows themselves: the guard's feed may be a second behind. A
// session that was ended says so itself too, whatever became of its revocation. A replica may know a key that was
// removed until its next reload: what is forged with it must not become a genuine token. LIMIT 1 has the rows
// looked up in the index.
const PRESENTED_REVOKED = `
  coalesce(date_trunc('second', r."presentedIssuedAt") <= date_trunc('second', revoked.at), false)
    OR ${isRevoked('jti', 'r."presentedTokenId"')} OR ${isRevoked('sid', 'r."presentedSessionId"::text')}
    OR coalesce((SELECT revoked_at IS NOT NULL FROM auth.refresh_family WHERE family_id = r."presentedSessionId" LIMIT 1), false)
    OR coalesce((SELECT state = 'removed' FROM auth.signing_key WHERE kid = r."presentedKeyId" LIMIT 1), false)`;

const ADMITTED = 'NOT presented_revoked AND wait_ms IS NULL';

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
    SELECT r.*, ${ISSUE_INSTANT} AS issued_at, revoked.at AS revoked_at, ${WAIT_MS} AS wait_ms, ${PRESENTED_REVOKED} AS presented_revoked
    FROM json_to_recordset($1::json) AS r(position integer, ${REVOCABLE_FIELDS}, "presentedTokenId" text, "presentedSessionId" uuid, "presentedKeyId" text,
      "presentedIssuedAt" timestamptz, family json, ${ISSUE_AUDIT_FIELDS})
    CROSS JOIN LATERAL (${NEWEST_REVOCATION}) AS revoked
  ), opened AS MATERIALIZED (
    SELECT f.*, verdict.position, verdict.issued_at, verdict."personId"::bigint AS person_id, verdict."userId"::bigint AS user_id,
      ${expiresAt('coalesce("authTime", issued_at)')} AS expires_at, known.persona_limit
    FROM verdict, json_to_record(verdict.family) AS f(${FAMILY_FIELDS})
    LEFT JOIN LATERAL (SELECT persona_limit FROM auth.refresh_family WHERE family_id = f."familyId" LIMIT 1) AS known ON true
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
    WHERE coalesce(opened.persona_limit, family.persona_limit) & ~opened."personaLimit" = 0
  ), token AS (
    INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at)
    SELECT "tokenId", "familyId", issued_at, expires_at FROM refreshable
  ), noted AS MATERIALIZED (${NOTE_ISSUE}
  ), audited AS (${insertIssueAuditsOf('verdict', ADMITTED)})
  SELECT position, verdict.issued_at AS "issuedAt", presented_revoked AS "presentedRevoked", wait_ms AS "waitMs",
    revoked_at AS "revokedAt", expires_at AS "refreshExpiresAt"
  FROM verdict LEFT JOIN refreshable USING (position) CROSS JOIN (SELECT count(*) FROM noted) AS noted`,
};

// Hand-written SQL: hot and batched. LIMIT 1 has each row looked up by itself: a plan that was made while the
// tables were small joins them from end to end.
const FIND_REFRESH_SESSIONS: PreparedStatement = {
  name: 'find-refresh-sessions',
  text: `
  SELECT t.jti, t.family_id AS "familyId", f.subject,
    f.application_key AS "applicationKey", f.persona_limit AS "personaLimit",
    now() AS now, t.issued_at AS "issuedAt", f.auth_time AS "authTime", t.rotated_at AS "rotatedAt",
    ${ROTATION_SEEN_AT} AS "rotationSeenAt",
    t.successor_jti AS "successorJti", s.issued_at AS "successorIssuedAt", s.expires_at AS "successorExpiresAt",
    s.rotated_at AS "successorRotatedAt",
    coalesce(f.revoked_at, (SELECT revocation_date FROM auth.revocations WHERE domain = 'sid' AND identifier = f.family_id::text))
      AS "familyRevokedAt",
    (${newestRevocation('f.person_id::text', 'f.user_id::text', 'f.subject', 'f.application_key')}) AS "userRevokedAt",
    a.application
  FROM unnest(${listParameter(1, 'uuid')}) AS asked (jti)
  CROSS JOIN LATERAL (SELECT * FROM auth.refresh_token WHERE jti = asked.jti LIMIT 1) AS t
  CROSS JOIN LATERAL (SELECT * FROM auth.refresh_family WHERE family_id = t.family_id LIMIT 1) AS f
  LEFT JOIN LATERAL (SELECT issued_at, expires_at, rotated_at FROM auth.refresh_token WHERE jti = t.successor_jti LIMIT 1) AS s ON true
  LEFT JOIN LATERAL (
    SELECT json_build_object('applicationKey', application_key, 'allowedPersonas', allowed_personas, 'allowRefresh', allow_refresh,
      'allowAdministrators', allow_administrators, 'allowedFlows', allowed_flows, 'allowedSubjects', allowed_subjects) AS application
    FROM auth.application WHERE application_key = f.application_key AND enabled LIMIT 1
  ) AS a ON true`,
};

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

/** A batch of tokens a day after expiry, so that one is still known while any clock could accept it. A family goes with its last token: looked
 *  for by age, every session that lives long would be looked at every time. By one replica at a time: two could wait for tokens of one family
 *  crosswise. Arrays have the rows looked up one by one, whatever the statistics say. */
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
  /** Dates and audits an issue and opens the refresh family that it wants, in one round trip. A revoked presented token opens nothing, nor does
   *  a request that has to wait. */
  readonly issue: (request: IssueRequest) => Promise<Issue>;
  /** The session behind a refresh token, or null when it is not known (any more). */
  readonly find: (jti: string) => Promise<RefreshSession | null>;
  /** Replaces a refresh token by its successor, and audits it. Null, and nothing changed, when it is no longer the one to rotate: another
   *  request came first, or it was revoked in between. */
  readonly rotate: (rotation: Rotation) => Promise<Rotated | null>;

  constructor(@InjectDataSource() private readonly dataSource: DataSource) {
    this.issue = batched((requests) => this.issueAll(requests));
    this.find = batched((jtis) => this.findAll(jtis));
    this.rotate = batched((rotations) => this.rotateAll(rotations));
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
        requests.map(({ identity, applicationKey, presented, family, audit }, position) => ({
          position,
          ...revocableOf(identity, applicationKey),
          presentedTokenId: presented === null ? undefined : canonicalIdentifier('jti', presented.tokenId),
          presentedSessionId: presented?.sessionId,
          presentedKeyId: presented?.keyId ?? undefined,
          presentedIssuedAt: presented?.issuedAt,
          // What is left out reads as null, and costs less.
          family: family ?? undefined,
          ...audit,
        })),
      ),
    ]);
    return rows.toSorted((one, other) => one.position - other.position);
  }

  private async findAll(jtis: readonly string[]): Promise<(RefreshSession | null)[]> {
    const rows = await readPrepared<RefreshSession>(this.dataSource, FIND_REFRESH_SESSIONS, [jtis]);
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
      // Makes it unlikely that two replicas lock the same rows crosswise. A joined UPDATE promises no order: a deadlock is refused, and
      // `batched` takes the batch apart.
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
