import { inTransaction } from '@platform/database';
import type { DataSource, EntityManager } from 'typeorm';

/** A version of a secret that has not expired. */
interface UnexpiredSecret {
  version: number;
}

// Whoever changes an application's secrets holds its row: versions are counted on.
const LOCK = `SELECT application_key FROM auth.application WHERE application_key = $1 FOR UPDATE`;
const UNEXPIRED = `
  SELECT version FROM auth.application_secret
  WHERE application_key = $1 AND (expires_at IS NULL OR expires_at > now()) ORDER BY version DESC`;
const INSERT = `
  INSERT INTO auth.application_secret (application_key, version, ciphertext)
  SELECT $1, coalesce(max(version), 0) + 1, $2 FROM auth.application_secret WHERE application_key = $1
  RETURNING version`;
const EXPIRE = `
  WITH expired AS (
    UPDATE auth.application_secret SET expires_at = now() + $3 * interval '1 second'
    WHERE application_key = $1 AND version = ANY ($2::integer[]) RETURNING version, expires_at
  )
  SELECT version, expires_at AS "expiresAt" FROM expired ORDER BY version`;

/** The secrets of one application while nobody else can change them. */
export interface ApplicationSecrets {
  /** Newest first. */
  unexpired: readonly UnexpiredSecret[];
  /** Adds a version. @returns its number */
  add: (sealedSecret: Buffer) => Promise<number>;
  /** Lets versions expire. @param inSeconds 0: at once */
  expire: (versions: readonly number[], inSeconds: number) => Promise<{ version: number; expiresAt: Date }[]>;
}

/** Runs `change` in one transaction; what it throws undoes it.
 *  @param change gets null when there is no such application */
export function changeApplicationSecrets<T>(
  dataSource: DataSource,
  applicationKey: string,
  change: (secrets: ApplicationSecrets | null) => Promise<T>,
): Promise<T> {
  return inTransaction(dataSource, 'READ COMMITTED', async (manager) => {
    const found = await manager.query<unknown[]>(LOCK, [applicationKey]);
    return change(found.length === 0 ? null : await secretsOf(manager, applicationKey));
  });
}

async function secretsOf(manager: EntityManager, applicationKey: string): Promise<ApplicationSecrets> {
  return {
    unexpired: await manager.query<UnexpiredSecret[]>(UNEXPIRED, [applicationKey]),
    add: async (sealedSecret) => {
      const rows = await manager.query<{ version: number }[]>(INSERT, [applicationKey, sealedSecret]);
      return rows[0]!.version;
    },
    expire: (versions, inSeconds) => manager.query(EXPIRE, [applicationKey, versions, inSeconds]),
  };
}
