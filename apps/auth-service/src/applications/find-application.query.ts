import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { Personas } from '@platform/personas';
import { LIVE_SECRETS } from './application';

/** An enabled application as stored. Its live secrets are sealed, newest first. */
export interface ApplicationRow {
  applicationKey: string;
  allowedPersonas: Personas;
  allowRefresh: boolean;
  allowedFlows: string[];
  sealedSecrets: Buffer[];
}

const FIND_APPLICATION: PreparedStatement = {
  name: 'find-application',
  text: `
  SELECT a.application_key AS "applicationKey", a.allowed_personas AS "allowedPersonas",
    a.allow_refresh AS "allowRefresh", a.allowed_flows AS "allowedFlows",
    ARRAY(
      SELECT s.ciphertext FROM auth.application_secret s
      WHERE s.application_key = a.application_key AND (s.expires_at IS NULL OR s.expires_at > now())
      ORDER BY s.version DESC LIMIT ${String(LIVE_SECRETS)}
    ) AS "sealedSecrets"
  FROM auth.application a
  WHERE a.application_key = $1 AND a.enabled`,
};

/** The enabled application with this key, or null. */
export async function findApplication(
  dataSource: DataSource,
  applicationKey: string,
): Promise<ApplicationRow | null> {
  const rows = await queryPrepared<ApplicationRow>(dataSource, FIND_APPLICATION, [applicationKey]);
  return rows[0] ?? null;
}
