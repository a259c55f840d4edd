import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import { insertTokenAudit } from '../audit/token-audit';
import type { TokenAuditRow } from '../audit/token-audit';
import type { Identity } from '../identity/identity';
import { ISSUE_INSTANT, NEWEST_USER_REVOCATION, userRevocationParameters } from './user-revocation';

// One atomic UPDATE decides which of several concurrent requests rotates. The others find rotated_at set, even if they
// waited for the row, and change nothing.
const ROTATE: PreparedStatement = {
  name: 'rotate-refresh-token',
  text: `
  WITH revoked AS (${NEWEST_USER_REVOCATION}), instant AS (${ISSUE_INSTANT}),
  rotated AS (
    UPDATE auth.refresh_token t SET rotated_at = now(), successor_jti = $4
    FROM auth.refresh_family f, revoked
    WHERE t.jti = $3 AND t.rotated_at IS NULL AND f.family_id = t.family_id AND f.revoked_at IS NULL
      AND (revoked.at IS NULL OR date_trunc('second', t.issued_at) > date_trunc('second', revoked.at))
    RETURNING t.family_id
  ), audited AS (${insertTokenAudit('$6', ', rotated')})
  INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at)
  SELECT $4, family_id, issued_at, issued_at + $5 * interval '1 second' FROM rotated, instant
  RETURNING issued_at AS "issuedAt"`,
};

/** Replaces a refresh token by a successor, and audits it. Null, and nothing changed, when it is no longer the one to rotate: another request came
 *  first, or it was revoked in between. */
export async function rotateRefreshToken(
  dataSource: DataSource,
  identity: Identity,
  rotation: { jti: string; successorJti: string; lifetimeSeconds: number },
  audit: TokenAuditRow,
): Promise<{ issuedAt: Date } | null> {
  const rows = await queryPrepared<{ issuedAt: Date }>(dataSource, ROTATE, [
    ...userRevocationParameters(identity),
    rotation.jti,
    rotation.successorJti,
    rotation.lifetimeSeconds,
    JSON.stringify(audit),
  ]);
  return rows[0] ?? null;
}
