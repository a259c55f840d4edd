import type { MigrationInterface, QueryRunner } from 'typeorm';

/** What the service itself keeps: applications, refresh tokens, revocations, lockouts, signing keys. */
export class CreateAuthTables1764000000000 implements MigrationInterface {
  readonly name = 'CreateAuthTables1764000000000';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE auth.signing_key, auth.password_lockout, auth.revocation, auth.refresh_token,
      auth.refresh_family, auth.trust_replay, auth.application_secret, auth.application`);
  }
}

const STATEMENTS = [
  `CREATE TABLE auth.application (
    application_key text COLLATE "C" PRIMARY KEY,
    allowed_personas integer NOT NULL CHECK (allowed_personas BETWEEN 0 AND 31),
    allow_refresh boolean NOT NULL,
    allowed_flows text[] NOT NULL,
    enabled boolean NOT NULL DEFAULT true,
    created_at timestamptz NOT NULL DEFAULT now()
  )`,
  // Several live secrets let an application change its secret without an outage; the newest two count.
  `CREATE TABLE auth.application_secret (
    application_key text COLLATE "C" NOT NULL REFERENCES auth.application ON DELETE CASCADE,
    version integer NOT NULL,
    ciphertext bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz,
    PRIMARY KEY (application_key, version)
  )`,
  // Logged, not UNLOGGED: a crash must not forget which signatures were used.
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
  // Whole milliseconds, so that what the list shows is exactly what it filters by.
  `CREATE TABLE auth.revocation (
    domain text COLLATE "C" NOT NULL CHECK (domain IN ('svc-personid', 'internal-legacy', 'jti')),
    identifier text COLLATE "C" NOT NULL,
    revocation_date timestamptz(3) NOT NULL,
    revoked_by_subject text NOT NULL,
    revoked_by_client text,
    PRIMARY KEY (domain, identifier)
  )`,
  `CREATE INDEX revocation_date ON auth.revocation (revocation_date, domain, identifier)`,
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
];
