import { RETENTION_START, type RetentionCase } from './retention-case.ts';

const AT_ONCE = '0 seconds';
/**
 * The longest lifetime of a token, 366 days, plus 1 h for clock differences: older revocations affect no
 * token.
 */
const OLD_REVOCATION = '366 days 1 hour';
/** The default of AUDIT_RETENTION_DAYS. */
const AUDIT_TRAIL = '400 days';

/** Rows of the auth service. */
export const AUTH_ROWS: readonly RetentionCase[] = [
  {
    retention: '360 seconds',
    plant: `INSERT INTO auth.trust_replay (application_key, authentication_code, seen_at)
      VALUES ($1, decode('00', 'hex'), ${RETENTION_START})`,
    counts: { 'auth.trust_replay': 'SELECT count(*)::int FROM auth.trust_replay WHERE application_key = $1' },
  },
  {
    retention: '660 seconds',
    plant: `INSERT INTO auth.windows_ticket (authenticator_hash, seen_at)
      VALUES (sha256(convert_to($1, 'UTF8')), ${RETENTION_START})`,
    counts: {
      'auth.windows_ticket': `SELECT count(*)::int FROM auth.windows_ticket
        WHERE authenticator_hash = sha256(convert_to($1, 'UTF8'))`,
    },
  },
  {
    retention: '1 hour',
    plant: `INSERT INTO auth.password_lockout (user_name_key, failures, lockouts, last_failure_at)
      VALUES ($1, 1, 0, ${RETENTION_START})`,
    counts: {
      'auth.password_lockout': 'SELECT count(*)::int FROM auth.password_lockout WHERE user_name_key = $1',
    },
  },
  {
    retention: AT_ONCE,
    plant: `INSERT INTO auth.openid_sign_in (state_hash, browser_hash, sealed_secrets, application_key, expires_at)
      VALUES (sha256(convert_to($1, 'UTF8')), decode('00', 'hex'), decode('00', 'hex'), $1, ${RETENTION_START})`,
    counts: {
      'auth.openid_sign_in': 'SELECT count(*)::int FROM auth.openid_sign_in WHERE application_key = $1',
    },
  },
  {
    retention: AT_ONCE,
    plant: `INSERT INTO auth.sign_on_code (code_hash, application_key, code_challenge, issuer, subject, auth_time, expires_at)
      VALUES (sha256(convert_to($1, 'UTF8')), $1, decode('00', 'hex'), $1, $1, now() - interval '1 hour', ${RETENTION_START})`,
    counts: { 'auth.sign_on_code': 'SELECT count(*)::int FROM auth.sign_on_code WHERE application_key = $1' },
  },
  {
    retention: '1 day',
    plant: `WITH family AS (
        INSERT INTO auth.refresh_family (family_id, subject, application_key, flow, persona_limit, auth_time)
        VALUES (gen_random_uuid(), $1, 'demo-backend', 'trust', 1, now() - interval '30 days') RETURNING family_id)
      INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at)
      SELECT gen_random_uuid(), family_id, now() - interval '20 days', ${RETENTION_START} FROM family`,
    counts: {
      'auth.refresh_token':
        'SELECT count(*)::int FROM auth.refresh_token JOIN auth.refresh_family USING (family_id) WHERE subject = $1',
      'auth.refresh_family': 'SELECT count(*)::int FROM auth.refresh_family WHERE subject = $1',
    },
  },
  {
    retention: AT_ONCE,
    plant: `INSERT INTO auth.rate_limit (bucket, free_at) VALUES ($1, ${RETENTION_START})`,
    counts: { 'auth.rate_limit': 'SELECT count(*)::int FROM auth.rate_limit WHERE bucket = $1' },
  },
  {
    retention: '1 minute',
    plant: `INSERT INTO auth.revocation_quota (subject, window_ends_at, used) VALUES ($1, ${RETENTION_START}, 1)`,
    counts: {
      'auth.revocation_quota': 'SELECT count(*)::int FROM auth.revocation_quota WHERE subject = $1',
    },
  },
  revocations('jti', AT_ONCE, `now() - interval '1 day'`, RETENTION_START),
  revocations('sid', AT_ONCE, `now() - interval '1 day'`, RETENTION_START),
  revocations('internal-legacy', OLD_REVOCATION, RETENTION_START, 'NULL'),
  revocations('sub', OLD_REVOCATION, RETENTION_START, 'NULL'),
  {
    retention: AUDIT_TRAIL,
    plant: `INSERT INTO auth.token_audit (flow, status, reason, user_name, occurred_at)
      VALUES ('trust', 200, 0, $1, ${RETENTION_START})`,
    counts: { 'auth.token_audit': 'SELECT count(*)::int FROM auth.token_audit WHERE user_name = $1' },
  },
  {
    retention: AUDIT_TRAIL,
    plant: `INSERT INTO auth.revocation_audit (domain, identifier, because, revoked_by_subject, occurred_at)
      VALUES ('sub', $1, 'request', $1, ${RETENTION_START})`,
    counts: {
      'auth.revocation_audit':
        'SELECT count(*)::int FROM auth.revocation_audit WHERE revoked_by_subject = $1',
    },
  },
];

/**
 * @param date SQL for the date of the revocation
 * @param expires SQL for the instant at which the revoked token or session expires. NULL: unknown
 */
function revocations(domain: string, retention: string, date: string, expires: string): RetentionCase {
  return {
    retention,
    plant: `INSERT INTO auth.revocations (domain, identifier, revocation_date, revoked_by_subject, expires_at)
      VALUES ('${domain}', gen_random_uuid()::text, ${date}, $1, ${expires})`,
    counts: {
      [`auth.revocations (${domain})`]: `SELECT count(*)::int FROM auth.revocations
        WHERE domain = '${domain}' AND revoked_by_subject = $1`,
    },
  };
}
