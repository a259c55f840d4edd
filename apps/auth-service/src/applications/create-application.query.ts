import { inTransaction } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { Application } from './application';

const INSERT_APPLICATION = `
  INSERT INTO auth.application (application_key, allowed_personas, allow_refresh, allowed_flows)
  VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING application_key`;
const INSERT_SECRET = `
  INSERT INTO auth.application_secret (application_key, version, ciphertext) VALUES ($1, 1, $2)`;

/** Registers an application with its first secret. @returns false, and nothing changed, when the key is taken */
export function createApplication(
  dataSource: DataSource,
  application: Application,
  sealedSecret: Buffer,
): Promise<boolean> {
  const { applicationKey, allowedPersonas, allowRefresh, allowedFlows } = application;
  return inTransaction(dataSource, 'READ COMMITTED', async (manager) => {
    const created = await manager.query<unknown[]>(INSERT_APPLICATION, [
      applicationKey,
      allowedPersonas,
      allowRefresh,
      allowedFlows,
    ]);
    if (created.length === 0) return false;
    await manager.query(INSERT_SECRET, [applicationKey, sealedSecret]);
    return true;
  });
}
