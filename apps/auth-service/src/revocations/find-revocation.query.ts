import type { DataSource } from 'typeorm';
import type { RevocationRow } from './list-revocations.query';
import type { RevocationDomain } from './revocation';

const FIND = `
  SELECT domain, identifier, revocation_date AS "revocationDate"
  FROM auth.revocation WHERE domain = $1 AND identifier = $2`;

export async function findRevocation(
  dataSource: DataSource,
  domain: RevocationDomain,
  identifier: string,
): Promise<RevocationRow | null> {
  const rows = await dataSource.query<RevocationRow[]>(FIND, [domain, identifier]);
  return rows[0] ?? null;
}
