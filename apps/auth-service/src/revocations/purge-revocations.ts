import { PURGE_BATCH, purgeBatch } from '../purge-batch';

/**
 * No token lives longer than 366 days (the verifier refuses others), and one that a revocation covers was
 * issued before it. The hour is for clocks that differ.
 */
const OLD = `revocation_date < now() - interval '366 days 1 hour'`;

/** Revocations of tokens whose expiry is known. */
export const PURGE_TOKEN_REVOCATIONS = purgeBatch('revocation', 'expires_at < now()', 'expires_at');

/**
 * Revocations of sessions. A refresh family that was opened while its session was being revoked is ended with
 * it: nothing else would say so any more.
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

/** Everything else of persons and users, and tokens whose expiry is not known. */
export const PURGE_OLD_REVOCATIONS = purgeBatch('revocation', OLD, 'revocation_date');
/** Everything else of subjects and applications. */
export const PURGE_OLD_SESSION_REVOCATIONS = purgeBatch('session_revocation', OLD, 'revocation_date');
