import { DECISIVE, type KeptRows } from './kept-rows.ts';

const AT_ONCE = '0 seconds';
/** No token of 366 days can be meant by an older one; the hour is for clocks that differ. */
const OLD_REVOCATION = '366 days 1 hour';
/** AUDIT_RETENTION_DAYS unless given. */
const AUDIT_TRAIL = '400 days';

/** Rows of the auth service. */
export const AUTH_ROWS: readonly KeptRows[] = [
  {
    stays: '360 seconds',
    plant: `INSERT INTO auth.trust_replay (application_key, authentication_code, seen_at)
      VALUES ($1, decode('00', 'hex'), ${DECISIVE})`,
    counts: { 'auth.trust_replay': 'SELECT count(*)::int FROM auth.trust_replay WHERE application_key = $1' },
  },
  {
    stays: '660 seconds',
    plant: `INSERT INTO auth.windows_ticket (authenticator_hash, seen_at)
      VALUES (sha256(convert_to($1, 'UTF8')), ${DECISIVE})`,
    counts: {
      'auth.windows_ticket': `SELECT count(*)::int FROM auth.windows_ticket
        WHERE authenticator_hash = sha256(convert_to($1, 'UTF8'))`,
    },
  },
  {
    stays: '1 hour',
    plant: `INSERT INTO auth.password_lockout (user_name_key, failures, lockouts, last_failure_at)
      VALUES ($1, 1, 0, ${DECISIVE})`,
    counts: {
      'auth.password_lockout': 'SELECT count(*)::int FROM auth.password_lockout WHERE user_name_key = $1',
    },
  },
  {
    stays: AT_ONCE,
    plant: `INSERT INTO auth.openid_sign_in (state_hash, browser_hash, sealed_secrets, application_key, expires_at)
      VALUES (sha256(convert_to($1, 'UTF8')), decode('00', 'hex'), decode('00', 'hex'), $1, ${DECISIVE})`,
    counts: {
      'auth.openid_sign_in': 'SELECT count(*)::int FROM auth.openid_sign_in WHERE application_key = $1',
    },
  },
  {
    stays: AT_ONCE,
    plant: `INSERT INTO auth.sign_on_code (code_hash, application_key, code_challenge, issuer, subject, auth_time, expires_at)
      VALUES (sha256(convert_to($1, 'UTF8')), $1, decode('00', 'hex'), $1, $1, now() - interval '1 hour', ${DECISIVE})`,
    counts: { 'auth.sign_on_code': 'SELECT count(*)::int FROM auth.sign_on_code WHERE application_key = $1' },
  },
  {
    stays: '1 day',
    plant: `WITH family AS (
        INSERT INTO auth.refresh_family (family_id, subject, application_key, flow, persona_limit, auth_time)
        VALUES (gen_random_uuid(), $1, 'demo-backend', 'trust', 1, now() - interval '30 days') RETURNING family_id)
      INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at)
      SELECT gen_random_uuid(), family_id, now() - interval '20 days', ${DECISIVE} FROM family`,
    counts: {
      'auth.refresh_token':
        'SELECT count(*)::int FROM auth.refresh_token JOIN auth.refresh_family USING (family_id) WHERE subject = $1',
      'auth.refresh_family': 'SELECT count(*)::int FROM auth.refresh_family WHERE subject = $1',
    },
  },
  {
    stays: AT_ONCE,
    plant: `INSERT INTO auth.rate_limit (bucket, free_at) VALUES ($1, ${DECISIVE})`,
    counts: { 'auth.rate_limit': 'SELECT count(*)::int FROM auth.rate_limit WHERE bucket = $1' },
  },
  {
    stays: '1 minute',
    plant: `INSERT INTO auth.revocation_quota (subject, window_ends_at, used) VALUES ($1, ${DECISIVE}, 1)`,
    counts: {
      'auth.revocation_quota': 'SELECT count(*)::int FROM auth.revocation_quota WHERE subject = $1',
    },
  },
  revocations('jti', AT_ONCE, `now() - interval '1 day'`, DECISIVE),
  revocations('sid', AT_ONCE, `now() - interval '1 day'`, DECISIVE),
  revocations('internal-legacy', OLD_REVOCATION, DECISIVE, 'NULL'),
  revocations('sub', OLD_REVOCATION, DECISIVE, 'NULL'),
  {
    stays: AUDIT_TRAIL,
    plant: `INSERT INTO auth.token_audit (flow, status, reason, user_name, occurred_at)
      VALUES ('trust', 200, 0, $1, ${DECISIVE})`,
    counts: { 'auth.token_audit': 'SELECT count(*)::int FROM auth.token_audit WHERE user_name = $1' },
  },
  {
    stays: AUDIT_TRAIL,
    plant: `INSERT INTO auth.revocation_audit (domain, identifier, because, revoked_by_subject, occurred_at)
      VALUES ('sub', $1, 'request', $1, ${DECISIVE})`,
    counts: {
      'auth.revocation_audit':
        'SELECT count(*)::int FROM auth.revocation_audit WHERE revoked_by_subject = $1',
    },
  },
];

/** @param date SQL: when it was set. @param expires SQL: from when on nothing is left that it could be
 *  about; NULL: nobody knows */
function revocations(domain: string, stays: string, date: string, expires: string): KeptRows {
  return {
    stays,
    plant: `INSERT INTO auth.revocations (domain, identifier, revocation_date, revoked_by_subject, expires_at)
      VALUES ('${domain}', gen_random_uuid()::text, ${date}, $1, ${expires})`,
    counts: {
      [`auth.revocations (${domain})`]: `SELECT count(*)::int FROM auth.revocations
        WHERE domain = '${domain}' AND revoked_by_subject = $1`,
    },
  };
}
