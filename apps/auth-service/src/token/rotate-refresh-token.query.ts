import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import { insertTokenAuditsOf } from '../audit/token-audit';
import type { TokenAuditRow } from '../audit/token-audit';
import type { Identity } from '../identity/identity';
import { ISSUE_INSTANT, newestUserRevocation } from './user-revocation';

/** A refresh token to replace. */
export interface Rotation {
  jti: string;
  successorJti: string;
  lifetimeSeconds: number;
  identity: Pick<Identity, 'personId' | 'userId'>;
  audit: TokenAuditRow;
}

/** A refresh token that was replaced; its successor counts as issued then. */
export interface Rotated {
  issuedAt: Date;
}

// One atomic UPDATE decides which of several concurrent requests rotates. The others find rotated_at set, even if they
// waited for the row, and change nothing; of two in one statement, the row takes the successor of one.
// The rows are found by $2: a plan that was made for a small table joins the request with all of a large one.
const ROTATE: PreparedStatement = {
  name: 'rotate-refresh-tokens',
  text: `
  WITH request AS MATERIALIZED (
    SELECT r.*, revoked.at AS revoked_at, ${ISSUE_INSTANT} AS issued_at
    FROM jsonb_to_recordset($1::jsonb) AS r(jti uuid, "successorJti" uuid, "lifetimeSeconds" double precision,
      "personId" text, "userId" text, audit jsonb)
    CROSS JOIN LATERAL (${newestUserRevocation('r."personId"', 'r."userId"')}) AS revoked
  ), rotated AS (
    UPDATE auth.refresh_token t SET rotated_at = now(), successor_jti = r."successorJti"
    FROM request r, auth.refresh_family f
    WHERE t.jti = ANY ($2::uuid[]) AND t.jti = r.jti AND t.rotated_at IS NULL AND f.family_id = t.family_id AND f.revoked_at IS NULL
      AND (r.revoked_at IS NULL OR date_trunc('second', t.issued_at) > date_trunc('second', r.revoked_at))
    RETURNING t.family_id, t.successor_jti
  ), done AS (
    SELECT request.*, rotated.family_id FROM rotated JOIN request ON request."successorJti" = rotated.successor_jti
  ), audited AS (${insertTokenAuditsOf('done')})
  INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at)
  SELECT "successorJti", family_id, issued_at, issued_at + "lifetimeSeconds" * interval '1 second' FROM done
  RETURNING jti AS "successorJti", issued_at AS "issuedAt"`,
};

/** Replaces refresh tokens by their successors, and audits it. Null, and nothing changed, for each that is no longer the one to rotate: another
 *  request came first, or it was revoked in between. */
export async function rotateRefreshTokens(
  dataSource: DataSource,
  rotations: readonly Rotation[],
): Promise<(Rotated | null)[]> {
  const requests = rotations
    .map(({ identity: { personId, userId }, ...rotation }) => ({ ...rotation, personId, userId }))
    // Makes it unlikely that two replicas lock the same rows crosswise. A joined UPDATE promises no order: a deadlock is refused, and `together`
    // takes the batch apart.
    .toSorted((one, other) => (one.jti < other.jti ? -1 : 1));
  const rows = await queryPrepared<Rotated & { successorJti: string }>(dataSource, ROTATE, [
    JSON.stringify(requests),
    requests.map(({ jti }) => jti),
  ]);
  const done = new Map(rows.map(({ successorJti, issuedAt }) => [successorJti, { issuedAt }]));
  return rotations.map(({ successorJti }) => done.get(successorJti) ?? null);
}
