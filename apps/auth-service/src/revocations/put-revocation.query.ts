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
  )
  UPDATE auth.refresh_family SET revoked_at = now(), revoked_because = 'revocation'
  WHERE revoked_at IS NULL AND $1 = 'jti'
    AND family_id = (SELECT family_id FROM auth.refresh_token WHERE jti = $5)`;

const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

/** Sets a revocation to the present time. Revoking a refresh token ends its whole family in the same statement. */
export async function putRevocation(
  dataSource: DataSource,
  revocation: { domain: RevocationDomain; identifier: string },
  revokedBy: { subject: string; clientId: string | null },
): Promise<void> {
  const { domain, identifier } = revocation;
  const refreshJti = domain === 'jti' && UUID.test(identifier) ? identifier : null;
  await dataSource.query(PUT, [domain, identifier, revokedBy.subject, revokedBy.clientId, refreshJti]);
}
