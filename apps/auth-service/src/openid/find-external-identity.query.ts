import type { DataSource } from 'typeorm';
import type { IdentityQuery } from '../identity/identity';

/** Exactly one of the two is set. */
interface MappedIdentity {
  personId: number | null;
  userId: number | null;
}

// bigint would come as text; identifiers fit a double.
const FIND = `
  SELECT person_id::float8 AS "personId", user_id::float8 AS "userId"
  FROM auth.external_identity WHERE issuer = $1 AND subject = $2`;

/** Who an identity provider's subject is on this platform, or null when nobody. */
export async function findExternalIdentity(
  dataSource: DataSource,
  issuer: string,
  subject: string,
): Promise<IdentityQuery | null> {
  const [mapped] = await dataSource.query<MappedIdentity[]>(FIND, [issuer, subject]);
  if (mapped === undefined) return null;
  const { personId, userId } = mapped;
  return personId === null ? { by: 'user', userId: userId! } : { by: 'person', personId };
}
