import type { DataSource } from 'typeorm';

const REVOKE = `
  UPDATE auth.refresh_family SET revoked_at = now(), revoked_because = $2
  WHERE family_id = $1 AND revoked_at IS NULL`;

/** Ends a refresh family: no token of it is accepted any more. The first reason is kept. */
export async function revokeRefreshFamily(
  dataSource: DataSource,
  familyId: string,
  because: 'reuse',
): Promise<void> {
  await dataSource.query(REVOKE, [familyId, because]);
}
