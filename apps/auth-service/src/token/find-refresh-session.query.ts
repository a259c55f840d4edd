import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import type { Application } from '../applications/application';
import type { RefreshState } from './refresh-state';

/** A refresh token's row with its family and its successor. */
export interface RefreshSession extends RefreshState {
  jti: string;
  familyId: string;
  subject: string;
  applicationKey: string;
  personaLimit: number;
  successorJti: string | null;
  successorIssuedAt: Date | null;
  /** Null when the application has gone or is disabled. */
  application: Application | null;
}

const FIND_REFRESH_SESSIONS: PreparedStatement = {
  name: 'find-refresh-sessions',
  text: `
  SELECT t.jti, t.family_id AS "familyId", f.subject,
    f.application_key AS "applicationKey", f.persona_limit AS "personaLimit",
    now() AS now, t.issued_at AS "issuedAt", f.auth_time AS "authTime", t.rotated_at AS "rotatedAt",
    t.successor_jti AS "successorJti", s.issued_at AS "successorIssuedAt", s.rotated_at AS "successorRotatedAt",
    f.revoked_at AS "familyRevokedAt",
    (SELECT max(r.revocation_date) FROM auth.revocation r
      WHERE (r.domain = 'svc-personid' AND r.identifier = f.person_id::text)
         OR (r.domain = 'internal-legacy' AND r.identifier = f.user_id::text)) AS "userRevokedAt",
    CASE WHEN a.enabled THEN json_build_object('applicationKey', a.application_key,
      'allowedPersonas', a.allowed_personas, 'allowRefresh', a.allow_refresh, 'allowedFlows', a.allowed_flows) END AS application
  FROM auth.refresh_token t
  JOIN auth.refresh_family f USING (family_id)
  LEFT JOIN auth.refresh_token s ON s.jti = t.successor_jti
  LEFT JOIN auth.application a ON a.application_key = f.application_key
  WHERE t.jti = ANY ($1)`,
};

/** For each refresh token the session behind it, or null when it is not known (any more). */
export async function findRefreshSessions(
  dataSource: DataSource,
  jtis: readonly string[],
): Promise<(RefreshSession | null)[]> {
  const rows = await queryPrepared<RefreshSession>(dataSource, FIND_REFRESH_SESSIONS, [jtis]);
  const byJti = new Map(rows.map((row) => [row.jti, row]));
  return jtis.map((jti) => byJti.get(jti.toLowerCase()) ?? null);
}
