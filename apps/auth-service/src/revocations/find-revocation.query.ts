import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { RevocationRow } from './list-revocations.query';
import type { RevocationDomain } from './revocation';

const FIND: PreparedStatement = {
  name: 'find-revocation',
  text: `
  SELECT domain, identifier, revocation_date AS "revocationDate"
  FROM auth.revocation WHERE domain = $1 AND identifier = $2`,
};

export async function findRevocation(
  dataSource: DataSource,
  domain: RevocationDomain,
  identifier: string,
): Promise<RevocationRow | null> {
  const rows = await queryPrepared<RevocationRow>(dataSource, FIND, [domain, identifier]);
  return rows[0] ?? null;
}
