import type { DataSource } from 'typeorm';

// Only what is revoked by this very statement is audited: of two requests at once, one.
const REVOKE = `
  WITH family AS (
    UPDATE auth.refresh_family SET revoked_at = now(), revoked_because = $2
    WHERE family_id = $1 AND revoked_at IS NULL
    RETURNING family_id, subject, application_key
  )
  INSERT INTO auth.revocation_audit
    (domain, identifier, because, revoked_by_subject, revoked_by_client, address, trace_id)
  SELECT 'refresh-family', family_id::text, $2, subject, application_key, $3::inet, $4 FROM family`;

/** Ends a refresh family, and audits it: no token of it is accepted any more. The first reason is kept. */
export async function revokeRefreshFamily(
  dataSource: DataSource,
  familyId: string,
  because: 'reuse',
  origin: { address: string | null; traceId: string | null },
): Promise<void> {
  await dataSource.query(REVOKE, [familyId, because, origin.address, origin.traceId]);
}
