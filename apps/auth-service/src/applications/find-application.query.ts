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

const FIND_APPLICATIONS: PreparedStatement = {
  name: 'find-applications',
  text: `
  SELECT a.application_key AS "applicationKey", a.allowed_personas AS "allowedPersonas",
    a.allow_refresh AS "allowRefresh", a.allowed_flows AS "allowedFlows",
    ARRAY(
      SELECT s.ciphertext FROM auth.application_secret s
      WHERE s.application_key = a.application_key AND (s.expires_at IS NULL OR s.expires_at > now())
      ORDER BY s.version DESC LIMIT ${String(LIVE_SECRETS)}
    ) AS "sealedSecrets"
  FROM auth.application a
  WHERE a.application_key = ANY ($1) AND a.enabled`,
};

/** For each key the enabled application that has it, or null. */
export async function findApplications(
  dataSource: DataSource,
  applicationKeys: readonly string[],
): Promise<(ApplicationRow | null)[]> {
  const rows = await queryPrepared<ApplicationRow>(dataSource, FIND_APPLICATIONS, [applicationKeys]);
  const byKey = new Map(rows.map((row) => [row.applicationKey, row]));
  return applicationKeys.map((key) => byKey.get(key) ?? null);
}
