/**
 * Number of security groups in the internal legacy store: 200 chains, in which each group contains the next.
 */
const GROUPS = 10_000;
const CHAINS = 200;
/** Number of direct members of a group. */
const USERS_PER_GROUP = 5;

/**
 * Returns statements that fill the database of auth-service with `rows` users per store, sessions,
 * revocations and audit entries.
 */
export function scaleRowsOfAuth(rows: number): readonly string[] {
  return [...users(rows), ...groups(rows), ...sessions(rows), ...records(rows), 'ANALYZE'];
}

const users = (rows: number): readonly string[] => [
  `INSERT INTO person_directory.person (person_id, user_name, user_name_key, display_name, personas, password_hash, user_id)
   SELECT n, 'Person.' || n, 'person.' || n, 'Person', 2, 'h', 10000000 + n FROM generate_series(10001, 10000 + ${String(rows)}) AS n`,
  `INSERT INTO person_directory.person_role SELECT n, 'Role' FROM generate_series(10001, 10000 + ${String(rows)}) AS n`,
  `INSERT INTO person_directory.person_facility SELECT n, f FROM generate_series(10001, 10000 + ${String(rows)}) AS n, generate_series(1, 2) AS f`,
  `INSERT INTO internal_legacy.internal_user (user_id, user_name, user_name_key, display_name, password_hash, windows_account_key, person_id)
   SELECT n, 'User.' || n, 'user.' || n, 'User', 'h', 'user.' || n || '@REALM', 20000000 + n
   FROM generate_series(10001, 10000 + ${String(rows)}) AS n`,
  `INSERT INTO service_providers.provider SELECT n, 'Provider' FROM generate_series(10001, 10000 + ${String(rows / 10)}) AS n`,
  `INSERT INTO service_providers.technician (provider_id, user_name, user_name_key, display_name, password_hash, person_id)
   SELECT 10001 + n % ${String(rows / 10)}, 'Tech.' || n, 'tech.' || n, 'Technician', 'h', 30000000 + n FROM generate_series(1, ${String(rows)}) AS n`,
  `INSERT INTO service_providers.technician_facility
   SELECT technician_id, 1 FROM service_providers.technician WHERE user_name_key LIKE 'tech.%'`,
];

const groups = (rows: number): readonly string[] => [
  `INSERT INTO internal_legacy.security_group SELECT 'g' || n FROM generate_series(0, ${String(GROUPS - 1)}) AS n`,
  `INSERT INTO internal_legacy.group_member_group SELECT 'g' || n, 'g' || n + ${String(CHAINS)}
   FROM generate_series(0, ${String(GROUPS - CHAINS - 1)}) AS n`,
  `INSERT INTO internal_legacy.group_member_user SELECT 'g' || n / ${String(USERS_PER_GROUP)}, 10001 + n
   FROM generate_series(0, ${String(Math.min(rows, GROUPS * USERS_PER_GROUP) - 1)}) AS n`,
  // All other users are in ten large groups outside the chains.
  `INSERT INTO internal_legacy.security_group SELECT 'everybody' || n FROM generate_series(0, 9) AS n`,
  `INSERT INTO internal_legacy.group_member_user SELECT 'everybody' || n % 10, n
   FROM generate_series(10001 + ${String(GROUPS * USERS_PER_GROUP)}, 10000 + ${String(rows)}) AS n`,
  `INSERT INTO internal_legacy.access_point SELECT 'door' || n FROM generate_series(0, 999) AS n`,
  `INSERT INTO internal_legacy.access_point_grant SELECT 'door' || n, 'g' || n FROM generate_series(0, 999) AS n`,
];

/** Returns the nth session identifier. */
export const jtiOf = (n: number): string => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;

/** Returns the nth session identifier as an SQL expression. */
const uuid = (n: string): string => `('00000000-0000-4000-8000-' || lpad((${n})::text, 12, '0'))::uuid`;

/** Live sessions, half of them for more than a year, with two tokens each, one of which is used. */
const sessions = (rows: number): readonly string[] => [
  `INSERT INTO auth.refresh_family (family_id, subject, person_id, application_key, flow, persona_limit, auth_time, created_at)
   SELECT ${uuid('n')}, 'personid:' || n, n, 'demo-backend', 'user', 31, at, at
   FROM generate_series(1, ${String(rows)}) AS n,
     LATERAL (SELECT now() - (CASE WHEN n % 2 = 0 THEN 400 ELSE 100 END) * interval '1 day' AS at) AS begun`,
  `INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at, rotated_at, successor_jti, rotated_in)
   SELECT ${uuid('n')}, ${uuid('n')}, at, at + interval '365 days', at + interval '1 day', ${uuid(`n + ${String(rows)}`)}, n
   FROM generate_series(1, ${String(rows)}) AS n, LATERAL (SELECT now() - interval '100 days' AS at) AS issued`,
  `INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at)
   SELECT ${uuid(`n + ${String(rows)}`)}, ${uuid('n')}, at, at + interval '365 days'
   FROM generate_series(1, ${String(rows)}) AS n, LATERAL (SELECT now() - interval '50 days' AS at) AS issued`,
  // Adds as many sessions of one owner: every other one has ended, and the rest are revoked by their subject.
  // The last statement gives the last session as many used tokens as there are sessions.
  `WITH family AS (
     INSERT INTO auth.refresh_family (family_id, subject, application_key, flow, persona_limit, auth_time, created_at, revoked_at)
     SELECT gen_random_uuid(), 'many', 'demo-backend', 'user', 31, at, at, CASE WHEN n % 2 = 0 THEN at + interval '1 day' END
     FROM generate_series(1, ${String(rows)}) AS n, LATERAL (SELECT now() - interval '60 days' - n * interval '1 second' AS at) AS begun
     RETURNING family_id, auth_time
   )
   INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at)
   SELECT gen_random_uuid(), family_id, auth_time, auth_time + interval '365 days' FROM family`,
  `INSERT INTO auth.revocations (domain, identifier, revocation_date, revoked_by_subject)
   VALUES ('sub', 'many', now() - interval '50 days', 's')`,
  `INSERT INTO auth.revocations (domain, identifier, revocation_date, revoked_by_subject)
   SELECT 'sid', gen_random_uuid()::text, now() - interval '300 days', 's' FROM generate_series(1, 10000) AS n`,
  `INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at, rotated_at, successor_jti, rotated_in)
   SELECT gen_random_uuid(), ${uuid(String(rows))}, at, at + interval '365 days', at + interval '1 minute', gen_random_uuid(), n
   FROM generate_series(1, ${String(rows)}) AS n, LATERAL (SELECT now() - interval '60 days' - n * interval '1 second' AS at) AS issued`,
];

const records = (rows: number): readonly string[] => [
  // Revocations no older than a token can be.
  `INSERT INTO auth.revocations (domain, identifier, revocation_date, revoked_by_subject, counted_client)
   SELECT CASE WHEN n <= ${String(rows)} * 0.5 THEN 'svc-personid' ELSE 'jti' END, n::text,
     now() - interval '360 days' + n * (interval '359 days' / ${String(rows)}), 's', CASE WHEN n % 10 = 0 THEN 'counted' END
   FROM generate_series(1, ${String(rows)}) AS n`,
  `INSERT INTO auth.token_audit (occurred_at, flow, status, reason)
   SELECT now() - interval '300 days' + n * (interval '299 days' / ${String(rows)}), 'user', 200, 0 FROM generate_series(1, ${String(rows)}) AS n`,
  `INSERT INTO auth.revocation_audit (occurred_at, domain, identifier, because)
   SELECT now() - interval '300 days' + n * (interval '299 days' / ${String(rows)}), 'jti', n::text, 'request' FROM generate_series(1, ${String(rows)}) AS n`,
  `INSERT INTO auth.trust_replay (application_key, authentication_code, seen_at)
   SELECT 'a', sha256(n::text::bytea), now() + n * (interval '1 hour' / ${String(rows)}) FROM generate_series(1, ${String(rows)}) AS n`,
  `INSERT INTO auth.rate_limit SELECT n::text, now() + interval '1 hour' FROM generate_series(1, ${String(rows)}) AS n`,
  `INSERT INTO auth.password_lockout (user_name_key, failures, lockouts, last_failure_at)
   SELECT n::text, 1, 0, now() FROM generate_series(1, ${String(rows)}) AS n`,
  `INSERT INTO auth.external_identity (issuer, subject, person_id) SELECT 'https://i', n::text, n FROM generate_series(1, ${String(rows)}) AS n`,
];

/** The tables with expiring rows, except the audit trails. */
export const EXPIRING_TABLES = [
  'trust_replay',
  'windows_ticket',
  'password_lockout',
  'openid_sign_in',
  'sign_on_code',
  'rate_limit',
  'revocation',
  'session_revocation',
  'refresh_token',
  'refresh_family',
] as const;

/**
 * Returns statements that add `rows` expired rows of each kind. Half of the revocations are of tokens, half
 * of sessions.
 */
export const expiredRowsOfAuth = (rows: number): readonly string[] => {
  const series = `generate_series(1, ${String(rows)}) AS n`;
  const ago = `now() - interval '400 days'`;
  return [
    `INSERT INTO auth.trust_replay SELECT 'expired', sha256(n::text::bytea), ${ago} FROM ${series}`,
    `INSERT INTO auth.windows_ticket SELECT sha256(n::text::bytea), ${ago} FROM ${series}`,
    `INSERT INTO auth.password_lockout SELECT 'expired-' || n, 1, 0, NULL, ${ago} FROM ${series}`,
    `INSERT INTO auth.openid_sign_in SELECT sha256(n::text::bytea), '', '', NULL, ${ago} FROM ${series}`,
    `INSERT INTO auth.sign_on_code SELECT sha256(n::text::bytea), 'a', '', 'i', 's', ${ago}, ${ago} FROM ${series}`,
    `INSERT INTO auth.rate_limit SELECT 'expired-' || n, ${ago} FROM ${series}`,
    `INSERT INTO auth.revocations SELECT CASE WHEN n % 2 = 0 THEN 'jti' ELSE 'sid' END, 'expired-' || n, ${ago}, 's', NULL FROM ${series}`,
    `INSERT INTO auth.refresh_family (family_id, subject, application_key, flow, persona_limit, auth_time, created_at)
     SELECT ${expiredUuid('n')}, 'expired', 'demo-backend', 'user', 31, ${ago}, ${ago}
     FROM generate_series(1, (${String(rows)} + 1) / 2) AS n`,
    // Two tokens per session, which expire together.
    `INSERT INTO auth.refresh_token (jti, family_id, issued_at, expires_at)
     SELECT ${expiredUuid('n')}, ${expiredUuid('(n + 1) / 2')}, ${ago}, ${ago} + interval '365 days' + n / 2 * interval '1 millisecond'
     FROM ${series}`,
  ];
};

const expiredUuid = (n: string): string =>
  `('00000000-0000-4000-9000-' || lpad((${n})::text, 12, '0'))::uuid`;
