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

// LIMIT 1 has each row looked up by itself: a plan that was made while the tables were small joins them from end to end.
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
  FROM unnest($1::uuid[]) AS asked (jti)
  CROSS JOIN LATERAL (SELECT * FROM auth.refresh_token WHERE jti = asked.jti LIMIT 1) AS t
  CROSS JOIN LATERAL (SELECT * FROM auth.refresh_family WHERE family_id = t.family_id LIMIT 1) AS f
  LEFT JOIN LATERAL (SELECT issued_at, rotated_at FROM auth.refresh_token WHERE jti = t.successor_jti LIMIT 1) AS s ON true
  LEFT JOIN LATERAL (SELECT * FROM auth.application WHERE application_key = f.application_key LIMIT 1) AS a ON true`,
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
