import type { DataSource } from 'typeorm';
import type { RevocationDomain } from './revocation';

// greatest(): a transaction that began earlier but ends later must not set the date back. Whole milliseconds, rounded
// down, so that no revocation lies in the future of the clock that made it.
const PUT = `
  WITH put AS (
    INSERT INTO auth.revocation AS r (domain, identifier, revocation_date, revoked_by_subject, revoked_by_client)
    VALUES ($1, $2, date_trunc('milliseconds', now()), $3, $4)
    ON CONFLICT (domain, identifier) DO UPDATE SET
      revocation_date = greatest(r.revocation_date, excluded.revocation_date),
      revoked_by_subject = excluded.revoked_by_subject,
      revoked_by_client = excluded.revoked_by_client
  ), audited AS (
    INSERT INTO auth.revocation_audit
      (domain, identifier, because, revoked_by_subject, revoked_by_client, address, trace_id)
    VALUES ($1, $2, 'request', $3, $4, $6::inet, $7)
  )
  UPDATE auth.refresh_family SET revoked_at = now(), revoked_because = 'revocation'
  WHERE revoked_at IS NULL AND $1 = 'jti'
    AND family_id = (SELECT family_id FROM auth.refresh_token WHERE jti = $5)`;

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/** Who revokes, and from where. */
export interface RevokedBy {
  subject: string;
  clientId: string | null;
  address?: string | null;
  traceId?: string | null;
}

/** Sets a revocation to the present time, and audits it. Revoking a refresh token ends its whole family in the same statement. */
export async function putRevocation(
  dataSource: DataSource,
  revocation: { domain: RevocationDomain; identifier: string },
  revokedBy: RevokedBy,
): Promise<void> {
  const { domain, identifier } = revocation;
  const refreshJti = domain === 'jti' && UUID.test(identifier) ? identifier : null;
  await dataSource.query(PUT, [
    domain,
    identifier,
    revokedBy.subject,
    revokedBy.clientId,
    refreshJti,
    revokedBy.address ?? null,
    revokedBy.traceId ?? null,
  ]);
}
