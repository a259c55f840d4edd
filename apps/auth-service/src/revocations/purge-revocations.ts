import { PURGE_BATCH, purgeBatch } from '../purge-batch';

/**
 * SQL: true if every token that the revocation covers has expired. A revocation covers tokens issued before
 * it, and the verifier refuses tokens with a lifetime over 366 days. The extra hour covers clock skew.
 */
const OLD = `revocation_date < now() - interval '366 days 1 hour'`;

/** Deletes revocations of single tokens with a known expiry. */
export const PURGE_TOKEN_REVOCATIONS = purgeBatch('revocation', 'expires_at < now()', 'expires_at');

/**
 * Deletes revocations of sessions, and ends the session's refresh family if it was opened while the session
 * was being revoked. Once the revocation is deleted, nothing else would mark that family as ended.
 */
export const PURGE_SESSION_REVOCATIONS = `
  WITH batch AS MATERIALIZED (
    SELECT ctid, identifier FROM auth.session_revocation
    WHERE expires_at < now() ORDER BY expires_at LIMIT ${String(PURGE_BATCH)} FOR UPDATE SKIP LOCKED
  ), ended AS (
    UPDATE auth.refresh_family SET revoked_at = now(), revoked_because = 'revocation'
    WHERE revoked_at IS NULL
      AND family_id = ANY (ARRAY(SELECT identifier::uuid FROM batch WHERE identifier ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'))
  ), removed AS (
    DELETE FROM auth.session_revocation WHERE ctid = ANY (ARRAY(SELECT ctid FROM batch)) RETURNING 1
  )
  SELECT count(*)::int AS removed FROM removed`;

/** Deletes old revocations of persons, users, and tokens with an unknown expiry. */
export const PURGE_OLD_REVOCATIONS = purgeBatch('revocation', OLD, 'revocation_date');
/** Deletes old revocations of subjects and applications, which share a partition with those of sessions. */
export const PURGE_OLD_SESSION_REVOCATIONS = purgeBatch('session_revocation', OLD, 'revocation_date');
