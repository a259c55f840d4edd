import {
  isApplicationRevokedSince,
  isRevoked,
  newestInterruption,
} from '../revocations/revocations.repository';

// Conditions of the statement that issues tokens, over a request `r` and its newest revocation `revoked`.

/** SQL: the `iat` of a token issued now. The database's clock decides, as it dates the revocations too. */
export const ISSUE_INSTANT = `date_trunc('second', now())`;

/**
 * SQL: null, or how long to wait until the second of the newest revocation, `revoked.at`, is over: it covers
 * what is issued in it. Tokens are never dated ahead: the next revocation, perhaps in this very second, would
 * miss them.
 */
export const WAIT_MS = `
  CASE WHEN date_trunc('second', revoked.at) >= ${ISSUE_INSTANT}
    THEN extract(epoch FROM date_trunc('second', revoked.at) + interval '1 second' - now())::float8 * 1000 END`;

// The presented token is judged here again, by the rows themselves: the guard's feed may be a second behind.
// A session that was ended says so itself too, whatever became of its revocation. A replica may know a key
// that was removed until its next reload: what is forged with it must not become a genuine token. LIMIT 1 has
// the rows looked up in the index.
export const PRESENTED_REVOKED = `
  coalesce(date_trunc('second', r."presentedIssuedAt") <= date_trunc('second', revoked.at), false)
    OR ${isRevoked('jti', 'r."presentedTokenId"')} OR ${isRevoked('sid', 'r."presentedSessionId"::text')}
    OR coalesce((SELECT revoked_at IS NOT NULL FROM auth.refresh_family WHERE family_id = r."presentedSessionId" LIMIT 1), false)
    OR coalesce((SELECT state = 'removed' FROM auth.signing_key WHERE kid = r."presentedKeyId" LIMIT 1), false)`;

/** SQL: whether a secret that was live when the application was read is so no longer. */
const SECRETS_GONE = `
  (SELECT count(*) FROM auth.application_secret AS secret
   WHERE secret.application_key = r."clientId" AND secret.version = ANY (r."secretVersions")
     AND (secret.expires_at IS NULL OR secret.expires_at > now())) < cardinality(r."secretVersions")`;

// Where nobody was revoked since the evidence was read, nothing more is looked up. Revocations by strangers
// interrupt nothing: see `NewRevocation.interrupts`. One of an application does where what proved it, or
// stands for it, is gone. Evidence from the future: the clock was set back, and cannot tell what is later.
export const INTERRUPTED = `
  CASE
    WHEN r."evidenceAt" > now() THEN true
    WHEN revoked.at >= r."evidenceAt" THEN
      coalesce(${newestInterruption('r."personId"', 'r."userId"', 'r.sub')} >= r."evidenceAt", false)
      OR (${isApplicationRevokedSince('r."clientId"', 'r."evidenceAt"')} AND (r."isCredential" OR ${SECRETS_GONE}))
    ELSE false
  END`;

/** SQL: whether the application that gets the tokens is disabled, or not there any more. */
export const APPLICATION_GONE = `
  r."clientId" IS NOT NULL
    AND NOT coalesce((SELECT enabled FROM auth.application WHERE application_key = r."clientId" LIMIT 1), false)`;

/** SQL: whether tokens are issued, over the columns that the above make. */
export const ADMITTED =
  'NOT presented_revoked AND NOT interrupted AND NOT application_gone AND wait_ms IS NULL';
