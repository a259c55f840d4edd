import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Creates the service's own tables: applications, refresh tokens, revocations, lockouts, signing keys, single
 * sign-on, the audit trail and the rate limits.
 */
export class CreateAuthTables1764000000000 implements MigrationInterface {
  readonly name = 'CreateAuthTables1764000000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of [...TABLES, PURGE_AUDIT, AUDIT_ADMINISTRATION, ...TRIGGERS])
      await runner.query(statement);
    for (const name of FUNCTIONS) await runner.query(`REVOKE ALL ON FUNCTION ${name} FROM PUBLIC`);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE auth.administration_audit, auth.rate_limit, auth.revocation_audit, auth.token_audit,
      auth.windows_ticket, auth.external_identity, auth.openid_sign_in, auth.signing_key, auth.password_lockout, auth.revocation,
      auth.refresh_token, auth.refresh_family, auth.trust_replay, auth.application_secret, auth.application`);
    for (const name of FUNCTIONS) await runner.query(`DROP FUNCTION ${name}`);
  }
}

const FUNCTIONS = ['auth.purge_audit(integer)', 'auth.audit_administration()'];

const TABLES = [
  `CREATE TABLE auth.application (
    application_key text COLLATE "C" PRIMARY KEY,
    allowed_personas integer NOT NULL CHECK (allowed_personas BETWEEN 0 AND 31),
    allow_refresh boolean NOT NULL,
    allowed_flows text[] NOT NULL,
    enabled boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now()
  )`,
  // Two live secrets let an application change its secret without an outage. Only the newest two are
  // accepted.
  `CREATE TABLE auth.application_secret (
    application_key text COLLATE "C" NOT NULL REFERENCES auth.application ON DELETE CASCADE,
    version integer NOT NULL,
    ciphertext bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    PRIMARY KEY (application_key, version)
  )`,
  // Logged rather than UNLOGGED: used signatures must survive a crash.
  `CREATE TABLE auth.trust_replay (
    application_key text COLLATE "C" NOT NULL,
    authentication_code bytea NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (application_key, authentication_code)
  )`,
  `CREATE INDEX trust_replay_seen_at ON auth.trust_replay (seen_at)`,
  `CREATE TABLE auth.refresh_family (
    family_id uuid PRIMARY KEY,
    subject text NOT NULL,
    person_id bigint,
    user_id bigint,
    application_key text COLLATE "C" NOT NULL,
    flow text NOT NULL,
    persona_limit integer NOT NULL,
    auth_time timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    revoked_at timestamptz,
    revoked_because text
  )`,
  `CREATE TABLE auth.refresh_token (
    jti uuid PRIMARY KEY,
    family_id uuid NOT NULL REFERENCES auth.refresh_family ON DELETE CASCADE,
    issued_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    rotated_at timestamptz,
    successor_jti uuid
  )`,
  `CREATE INDEX refresh_token_family ON auth.refresh_token (family_id)`,
  `CREATE INDEX refresh_token_expires_at ON auth.refresh_token (expires_at)`,
  // Whole milliseconds, so that the date in a response is exactly the date by which the list filters.
  `CREATE TABLE auth.revocation (
    domain text COLLATE "C" NOT NULL CHECK (domain IN ('svc-personid', 'internal-legacy', 'jti')),
    identifier text COLLATE "C" NOT NULL,
    revocation_date timestamptz(3) NOT NULL,
    revoked_by_subject text NOT NULL,
    revoked_by_client text,
    PRIMARY KEY (domain, identifier)
  )`,
  `CREATE INDEX revocation_date ON auth.revocation (revocation_date, domain, identifier)`,
  // Finds expired token revocations without reading those of users, which are kept.
  `CREATE INDEX revocation_of_tokens ON auth.revocation (revocation_date) WHERE domain = 'jti'`,
  `CREATE TABLE auth.password_lockout (
    user_name_key text COLLATE "C" PRIMARY KEY,
    failures integer NOT NULL,
    lockouts integer NOT NULL,
    locked_until timestamptz,
    last_failure_at timestamptz NOT NULL
  )`,
  `CREATE INDEX password_lockout_last_failure_at ON auth.password_lockout (last_failure_at)`,
  `CREATE TABLE auth.signing_key (
    kid text COLLATE "C" PRIMARY KEY,
    algorithm text NOT NULL CHECK (algorithm IN ('ES256', 'RS256')),
    state text NOT NULL CHECK (state IN ('next', 'active', 'retired', 'removed')),
    public_jwk jsonb NOT NULL,
    private_ciphertext bytea,
    created_at timestamptz NOT NULL DEFAULT now(),
    state_changed_at timestamptz NOT NULL DEFAULT now(),
    CHECK ((state = 'removed') = (private_ciphertext IS NULL))
  )`,
  `CREATE UNIQUE INDEX signing_key_one_active ON auth.signing_key (algorithm) WHERE state = 'active'`,
  `CREATE UNIQUE INDEX signing_key_one_next ON auth.signing_key (algorithm) WHERE state = 'next'`,
  `CREATE TABLE auth.openid_sign_in (
    state_hash bytea PRIMARY KEY,
    browser_hash bytea NOT NULL,
    sealed_secrets bytea NOT NULL,
    application_key text COLLATE "C",
    expires_at timestamptz NOT NULL
  )`,
  `CREATE INDEX openid_sign_in_expires_at ON auth.openid_sign_in (expires_at)`,
  // Compared byte by byte, because OpenID Connect's issuers and subjects are case-sensitive.
  `CREATE TABLE auth.external_identity (
    issuer text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    person_id bigint CHECK (person_id > 0),
    user_id bigint CHECK (user_id > 0),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (issuer, subject),
    CHECK (num_nonnulls(person_id, user_id) = 1)
  )`,
  // Kerberos tickets used on any replica. Logged rather than UNLOGGED: they must survive a crash.
  `CREATE TABLE auth.windows_ticket (
    authenticator_hash bytea PRIMARY KEY CHECK (octet_length(authenticator_hash) = 32),
    seen_at timestamptz NOT NULL DEFAULT now()
  )`,
  `CREATE INDEX windows_ticket_seen_at ON auth.windows_ticket (seen_at)`,
  // Audit ids ascend with time, so the oldest rows come first in the primary key. The BRIN index finds a time
  // range at almost no cost per insert.
  `CREATE TABLE auth.token_audit (
    audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    occurred_at timestamptz NOT NULL DEFAULT now(),
    trace_id text,
    flow text NOT NULL,
    status smallint NOT NULL,
    reason smallint,
    detail text,
    application_key text,
    subject text,
    user_name text,
    address inet,
    access_token_id uuid,
    CHECK ((status = 200) = (reason IS NOT NULL AND reason = 0))
  )`,
  `CREATE INDEX token_audit_occurred_at ON auth.token_audit USING brin (occurred_at)`,
  `CREATE TABLE auth.revocation_audit (
    audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    occurred_at timestamptz NOT NULL DEFAULT now(),
    trace_id text,
    domain text NOT NULL,
    identifier text NOT NULL,
    because text NOT NULL,
    revoked_by_subject text,
    revoked_by_client text,
    address inet
  )`,
  `CREATE INDEX revocation_audit_occurred_at ON auth.revocation_audit USING brin (occurred_at)`,
  `CREATE TABLE auth.administration_audit (
    audit_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    occurred_at timestamptz NOT NULL DEFAULT now(),
    object text NOT NULL,
    name text NOT NULL,
    operation text NOT NULL,
    change jsonb NOT NULL,
    database_role text NOT NULL DEFAULT session_user,
    program text DEFAULT current_setting('application_name', true),
    address inet DEFAULT inet_client_addr()
  )`,
  // UNLOGGED: counting a request writes nothing to disk. A crash of the server loses at most a minute of
  // counts.
  `CREATE UNLOGGED TABLE auth.rate_limit (
    bucket text COLLATE "C" PRIMARY KEY,
    free_at timestamptz NOT NULL
  )`,
  `CREATE INDEX rate_limit_free_at ON auth.rate_limit (free_at)`,
];

const FIRST_BY_IDENTIFIER = 'ORDER BY audit_id LIMIT 10000';

/**
 * Deletes the expired rows among the 10,000 oldest. `ctid` makes it read no other rows, whatever the
 * planner's statistics are.
 */
const removeExpired = (table: string): string => `
  DELETE FROM auth.${table} WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM (SELECT ctid, occurred_at FROM auth.${table} ${FIRST_BY_IDENTIFIER}) AS first
    WHERE occurred_at < oldest))`;

// The service may only insert into the audit trail. This function is its only way to delete rows, and it
// never deletes the last 30 days. So an attacker who takes over the service cannot erase traces.
const PURGE_AUDIT = `
  CREATE FUNCTION auth.purge_audit(retention_days integer) RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  DECLARE
    removed_tokens bigint;
    removed_revocations bigint;
    oldest timestamptz := now() - greatest(retention_days, 30) * interval '1 day';
  BEGIN
    IF retention_days IS NULL THEN RAISE EXCEPTION 'a retention is required'; END IF;
    ${removeExpired('token_audit')};
    GET DIAGNOSTICS removed_tokens = ROW_COUNT;
    ${removeExpired('revocation_audit')};
    GET DIAGNOSTICS removed_revocations = ROW_COUNT;
    RETURN removed_tokens + removed_revocations;
  END $$`;

// Records the new values of changed columns, and all values of a deleted row. Sealed secrets and keys are
// left out even though they are sealed, because the sealing key may leak one day.
const AUDIT_ADMINISTRATION = `CREATE FUNCTION auth.audit_administration() RETURNS trigger
   LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
   DECLARE
     hidden text[] := ARRAY['ciphertext', 'private_ciphertext', 'public_jwk'];
     before jsonb := CASE WHEN TG_OP = 'INSERT' THEN '{}' ELSE to_jsonb(OLD) - hidden END;
     after jsonb := CASE WHEN TG_OP = 'DELETE' THEN before ELSE to_jsonb(NEW) - hidden END;
   BEGIN
     INSERT INTO auth.administration_audit (object, name, operation, change)
     SELECT TG_TABLE_NAME, after ->> TG_ARGV[0], lower(TG_OP), coalesce(jsonb_object_agg(key, value), '{}')
     FROM jsonb_each(after) WHERE TG_OP = 'DELETE' OR before -> key IS DISTINCT FROM value;
     RETURN NULL;
   END $$`;

/** For each audited table, the column that names a row. */
const AUDITED = { application: 'application_key', application_secret: 'application_key', signing_key: 'kid' };

// Triggers record every change, whether made by the command line, a replica that generates its own key, or an
// administrator with psql. They run as the owner, because the service's role may not write to the trail.
const TRIGGERS = Object.entries(AUDITED).flatMap(([table, name]) => [
  `CREATE TRIGGER audit AFTER INSERT OR DELETE ON auth.${table}
   FOR EACH ROW EXECUTE FUNCTION auth.audit_administration('${name}')`,
  // An update without a change leaves no entry, e.g. loading the development identities again.
  `CREATE TRIGGER audit_update AFTER UPDATE ON auth.${table}
   FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION auth.audit_administration('${name}')`,
]);
