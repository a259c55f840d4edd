import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Single sign-on: sign-ins under way, and who the identity provider's subjects are here. */
export class CreateOpenIdTables1764000000400 implements MigrationInterface {
  readonly name = 'CreateOpenIdTables1764000000400';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE auth.external_identity, auth.openid_sign_in');
  }
}

const STATEMENTS = [
  `CREATE TABLE auth.openid_sign_in (
    state_hash bytea PRIMARY KEY,
    browser_hash bytea NOT NULL,
    sealed_secrets bytea NOT NULL,
    application_key text COLLATE "C",
    expires_at timestamptz NOT NULL
  )`,
  `CREATE INDEX openid_sign_in_expires_at ON auth.openid_sign_in (expires_at)`,
  // Compared byte by byte: OpenID Connect's issuers and subjects are case sensitive.
  `CREATE TABLE auth.external_identity (
    issuer text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    person_id bigint CHECK (person_id > 0),
    user_id bigint CHECK (user_id > 0),
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (issuer, subject),
    CHECK (num_nonnulls(person_id, user_id) = 1)
  )`,
];
