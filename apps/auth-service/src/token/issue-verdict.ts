import {
  isApplicationRevokedSince,
  isRevoked,
  newestInterruption,
} from '../revocations/revocations.repository';

// SQL expressions of the statement that issues tokens, over a request `r` and the newest revocation `revoked`
// of its user and application.

/** SQL: the `iat` of a token issued now, by the database's clock, which also dates the revocations. */
export const ISSUE_INSTANT = `date_trunc('second', now())`;

/**
 * SQL: milliseconds until the second of the newest revocation `revoked.at` is over, or null if it already is.
 * A revocation covers every token issued in its second, so the issue must wait. Dating the tokens into the
 * next second instead would let them escape a further revocation in the current second.
 */
export const WAIT_MS = `
  CASE WHEN date_trunc('second', revoked.at) >= ${ISSUE_INSTANT}
    THEN extract(epoch FROM date_trunc('second', revoked.at) + interval '1 second' - now())::float8 * 1000 END`;

/**
 * SQL: true if the presented access token is revoked. The guard has verified it already, but its revocation
 * feed may be a second behind. An ended session is checked as well, because its revocation may be purged. A
 * removed signing key is checked because a replica may trust it until its next reload, and a token forged
 * with it must not be exchanged for a genuine one. LIMIT 1 forces index look-ups.
 */
export const PRESENTED_REVOKED = `
  coalesce(date_trunc('second', r."presentedIssuedAt") <= date_trunc('second', revoked.at), false)
    OR ${isRevoked('jti', 'r."presentedTokenId"')} OR ${isRevoked('sid', 'r."presentedSessionId"::text')}
    OR coalesce((SELECT revoked_at IS NOT NULL FROM auth.refresh_family WHERE family_id = r."presentedSessionId" LIMIT 1), false)
    OR coalesce((SELECT state = 'removed' FROM auth.signing_key WHERE kid = r."presentedKeyId" LIMIT 1), false)`;

/** SQL: true if a secret that was live when the application was read has expired or been deleted since. */
const SECRETS_GONE = `
  (SELECT count(*) FROM auth.application_secret AS secret
   WHERE secret.application_key = r."clientId" AND secret.version = ANY (r."secretVersions")
     AND (secret.expires_at IS NULL OR secret.expires_at > now())) < cardinality(r."secretVersions")`;

/**
 * SQL: true if a revocation set since `evidenceAt` may concern the evidence of the sign-in (see `Evidence`).
 * Looks up nothing more if nothing was revoked since. A revocation of the user counts only if it sets
 * `interrupts_at` (see `NewRevocation.interrupts`). A revocation of the application counts if the evidence is
 * a credential, or a secret of the application is no longer live. Also true if `evidenceAt` lies in the
 * future: the clock was set back, so what came later cannot be told.
 */
export const INTERRUPTED = `
  CASE
    WHEN r."evidenceAt" > now() THEN true
    WHEN revoked.at >= r."evidenceAt" THEN
      coalesce(${newestInterruption('r."personId"', 'r."userId"', 'r.sub')} >= r."evidenceAt", false)
      OR (${isApplicationRevokedSince('r."clientId"', 'r."evidenceAt"')} AND (r."isCredential" OR ${SECRETS_GONE}))
    ELSE false
  END`;

/** SQL: true if the application that gets the tokens is disabled or deleted. */
export const APPLICATION_GONE = `
  r."clientId" IS NOT NULL
    AND NOT coalesce((SELECT enabled FROM auth.application WHERE application_key = r."clientId" LIMIT 1), false)`;

/** SQL: true if tokens are issued, over the columns computed by the expressions above. */
export const ADMITTED =
  'NOT presented_revoked AND NOT interrupted AND NOT application_gone AND wait_ms IS NULL';
