import type { DataSource } from 'typeorm';
import type { Personas } from '@platform/personas';
import { LIVE_SECRETS } from './application';

/** An application as administrators see it; the secrets themselves stay sealed. */
export interface ListedApplication {
  applicationKey: string;
  allowedPersonas: Personas;
  allowRefresh: boolean;
  allowedFlows: string[];
  enabled: boolean;
  createdAt: Date;
  secrets: ListedSecret[];
}

/** One version of an application's secret. Instants are ISO 8601 text. */
interface ListedSecret {
  version: number;
  createdAt: string;
  expiresAt: string | null;
  /** Whether it is accepted at present. */
  isLive: boolean;
}

const LIST = `
  SELECT a.application_key AS "applicationKey", a.allowed_personas AS "allowedPersonas",
    a.allow_refresh AS "allowRefresh", a.allowed_flows AS "allowedFlows", a.enabled, a.created_at AS "createdAt",
    coalesce(json_agg(json_build_object('version', s.version, 'createdAt', s.created_at, 'expiresAt', s.expires_at,
      'isLive', s.unexpired AND s.newer_unexpired < ${String(LIVE_SECRETS)}) ORDER BY s.version)
      FILTER (WHERE s.version IS NOT NULL), '[]') AS secrets
  FROM auth.application a
  LEFT JOIN LATERAL (
    SELECT version, created_at, expires_at, unexpired,
      count(*) FILTER (WHERE unexpired) OVER (ORDER BY version DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
        AS newer_unexpired
    FROM (
      SELECT *, expires_at IS NULL OR expires_at > now() AS unexpired
      FROM auth.application_secret WHERE application_key = a.application_key
    ) each
  ) s ON true
  GROUP BY a.application_key ORDER BY a.application_key`;

/** Every application, disabled ones included. */
export function listApplications(dataSource: DataSource): Promise<ListedApplication[]> {
  return dataSource.query<ListedApplication[]>(LIST);
}
