import { DEVELOPMENT_EXTERNAL_IDENTITIES } from './development-identities';
import type { SqlConnection } from './write-development-identities.query';

const PUT = `
  INSERT INTO auth.external_identity (issuer, subject, person_id, user_id) VALUES ($1, $2, $3, $4)
  ON CONFLICT (issuer, subject) DO UPDATE SET person_id = excluded.person_id, user_id = excluded.user_id`;

/** Maps the development provider's subjects to the development identities. @param issuer as its ID tokens say it */
export async function writeExternalIdentities(connection: SqlConnection, issuer: string): Promise<void> {
  for (const { subject, personId, userId } of DEVELOPMENT_EXTERNAL_IDENTITIES)
    await connection.query(PUT, [issuer, subject, personId, userId]);
}
