import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import { insertTokenAuditsOf } from '../audit/token-audit';
import type { TokenAuditRow } from '../audit/token-audit';
import type { Identity } from '../identity/identity';
import { ISSUE_INSTANT, newestUserRevocation } from './user-revocation';

/** A token that is being exchanged for another. */
export interface PresentedToken {
  tokenId: string;
  issuedAt: Date;
}

/** A refresh family to open, with its first token. */
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
}

/** Tokens to issue. */
export interface IssueRequest {
  identity: Pick<Identity, 'personId' | 'userId'>;
  presented: PresentedToken | null;
  /** Null: no refresh token. */
  family: NewRefreshFamily | null;
  audit: TokenAuditRow;
}

/** When the tokens count as issued, and whether the token presented for them has been revoked meanwhile. */
export interface Issue {
  issuedAt: Date;
  presentedRevoked: boolean;
}

// The presented token is judged here again, by the rows themselves: the guard's feed may be a second behind.
const PRESENTED_REVOKED = `
  coalesce(date_trunc('second', r."presentedIssuedAt") <= date_trunc('second', revoked.at), false)
    OR EXISTS (SELECT 1 FROM auth.revocation WHERE domain = 'jti' AND identifier = r."presentedTokenId")`;

const FAMILY_FIELDS = `"familyId" uuid, "tokenId" uuid, subject text, "applicationKey" text, flow text, "personaLimit" integer,
    "authTime" timestamptz, "lifetimeSeconds" double precision`;

const BEGIN_ISSUES: PreparedStatement = {
  name: 'begin-issues',
  text: `
  WITH verdict AS MATERIALIZED (
    SELECT r.*, ${ISSUE_INSTANT} AS issued_at, ${PRESENTED_REVOKED} AS presented_revoked
    FROM jsonb_to_recordset($1::jsonb) AS r(position integer, "personId" text, "userId" text, "presentedTokenId" text,
      "presentedIssuedAt" timestamptz, family jsonb, audit jsonb)
    CROSS JOIN LATERAL (${newestUserRevocation('r."personId"', 'r."userId"')}) AS revoked
  ), opened AS MATERIALIZED (
    SELECT f.*, verdict.issued_at, verdict."personId"::bigint AS person_id, verdict."userId"::bigint AS user_id
    FROM verdict, jsonb_to_record(verdict.family) AS f(${FAMILY_FIELDS})
    WHERE NOT presented_revoked AND jsonb_typeof(verdict.family) = 'object'
  ), family AS (
    INSERT INTO auth.refresh_family (family_id, subject, person_id, user_id, application_key, flow, persona_limit, auth_time)
    SELECT "familyId", subject, person_id, user_id, "applicationKey", flow, "personaLimit", coalesce("authTime", issued_at) FROM opened
  ), token AS (
    INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at)
    SELECT "tokenId", "familyId", issued_at, issued_at + "lifetimeSeconds" * interval '1 second' FROM opened
  ), audited AS (${insertTokenAuditsOf('verdict', 'NOT presented_revoked')})
  SELECT position, issued_at AS "issuedAt", presented_revoked AS "presentedRevoked" FROM verdict`,
};

/** Dates and audits issues and opens the refresh families that they want, in one round trip. A revoked presented token opens nothing. */
export async function beginIssues(
  dataSource: DataSource,
  requests: readonly IssueRequest[],
): Promise<Issue[]> {
  const rows = await queryPrepared<Issue & { position: number }>(dataSource, BEGIN_ISSUES, [
    JSON.stringify(
      requests.map(({ identity, presented, family, audit }, position) => ({
        position,
        personId: identity.personId,
        userId: identity.userId,
        presentedTokenId: presented?.tokenId ?? null,
        presentedIssuedAt: presented?.issuedAt ?? null,
        family,
        audit,
      })),
    ),
  ]);
  return rows.toSorted((one, other) => one.position - other.position);
}
