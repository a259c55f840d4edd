import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import { insertTokenAudit } from '../audit/token-audit';
import type { TokenAuditRow } from '../audit/token-audit';
import type { Identity } from '../identity/identity';
import { ISSUE_INSTANT, NEWEST_USER_REVOCATION, userRevocationParameters } from './user-revocation';

/** A token that is being exchanged for another. */
export interface PresentedToken {
  tokenId: string;
  issuedAt: Date;
}

/** When the tokens count as issued, and whether the token presented for them has been revoked meanwhile. */
export interface Issue {
  issuedAt: Date;
  presentedRevoked: boolean;
}

// The presented token is judged here again, by the rows themselves: the guard's feed may be a second behind.
const PRESENTED_REVOKED = `
  coalesce(date_trunc('second', $4::timestamptz) <= date_trunc('second', revoked.at), false)
    OR EXISTS (SELECT 1 FROM auth.revocation WHERE domain = 'jti' AND identifier = $3)`;

const BEGIN_ISSUE: PreparedStatement = {
  name: 'begin-issue',
  text: `
  WITH revoked AS (${NEWEST_USER_REVOCATION}), instant AS (${ISSUE_INSTANT}),
  verdict AS (SELECT issued_at, ${PRESENTED_REVOKED} AS presented_revoked FROM instant, revoked),
  audited AS (${insertTokenAudit('$5', ', verdict WHERE NOT presented_revoked')})
  SELECT issued_at AS "issuedAt", presented_revoked AS "presentedRevoked" FROM verdict`,
};

/** Dates and audits an issue without a refresh token. */
export async function beginIssue(
  dataSource: DataSource,
  identity: Identity,
  presented: PresentedToken | null,
  audit: TokenAuditRow,
): Promise<Issue> {
  const rows = await queryPrepared<Issue>(dataSource, BEGIN_ISSUE, [
    ...userRevocationParameters(identity),
    presented?.tokenId ?? null,
    presented?.issuedAt ?? null,
    JSON.stringify(audit),
  ]);
  return rows[0]!;
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

const BEGIN_ISSUE_WITH_REFRESH: PreparedStatement = {
  name: 'begin-issue-with-refresh',
  text: `
  WITH revoked AS (${NEWEST_USER_REVOCATION}), instant AS (${ISSUE_INSTANT}),
  verdict AS (SELECT issued_at, ${PRESENTED_REVOKED} AS presented_revoked FROM instant, revoked),
  family AS (
    INSERT INTO auth.refresh_family (family_id, subject, person_id, user_id, application_key, flow, persona_limit, auth_time)
    SELECT $5, $7, $1::bigint, $2::bigint, $8, $9, $10, coalesce($11, issued_at) FROM verdict WHERE NOT presented_revoked
    RETURNING family_id
  ), token AS (
    INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at)
    SELECT $6, family_id, issued_at, issued_at + $12 * interval '1 second' FROM family, verdict
  ), audited AS (${insertTokenAudit('$13', ', verdict WHERE NOT presented_revoked')})
  SELECT issued_at AS "issuedAt", presented_revoked AS "presentedRevoked" FROM verdict`,
};

/** Dates and audits an issue and opens its refresh family, in one round trip. A revoked presented token opens nothing. */
export async function beginIssueWithRefresh(
  dataSource: DataSource,
  identity: Identity,
  presented: PresentedToken | null,
  family: NewRefreshFamily,
  audit: TokenAuditRow,
): Promise<Issue> {
  const rows = await queryPrepared<Issue>(dataSource, BEGIN_ISSUE_WITH_REFRESH, [
    ...userRevocationParameters(identity),
    presented?.tokenId ?? null,
    presented?.issuedAt ?? null,
    family.familyId,
    family.tokenId,
    family.subject,
    family.applicationKey,
    family.flow,
    family.personaLimit,
    family.authTime,
    family.lifetimeSeconds,
    JSON.stringify(audit),
  ]);
  return rows[0]!;
}
