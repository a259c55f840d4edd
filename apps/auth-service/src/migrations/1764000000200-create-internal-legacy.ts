import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The internal legacy store: internal users, security groups and access points. Groups may contain each other in cycles. */
export class CreateInternalLegacy1764000000200 implements MigrationInterface {
  readonly name = 'CreateInternalLegacy1764000000200';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE internal_legacy.access_point_grant, internal_legacy.access_point,
      internal_legacy.group_member_group, internal_legacy.group_member_user, internal_legacy.security_group,
      internal_legacy.internal_user`);
  }
}

const STATEMENTS = [
  `CREATE TABLE internal_legacy.internal_user (
    user_id bigint PRIMARY KEY CHECK (user_id > 0),
    user_name text NOT NULL,
    user_name_key text COLLATE "C" NOT NULL UNIQUE,
    display_name text NOT NULL,
    disabled boolean NOT NULL DEFAULT false,
    password_hash text,
    person_id bigint UNIQUE,
    -- <folded user name>@<realm>, folded by the application like user_name_key. An equal user name alone maps nobody.
    windows_account_key text COLLATE "C" UNIQUE CHECK (windows_account_key ~ '^[^@]+@[^@]+$')
  )`,
  `CREATE TABLE internal_legacy.security_group (group_name text COLLATE "C" PRIMARY KEY)`,
  `CREATE TABLE internal_legacy.group_member_user (
    group_name text COLLATE "C" NOT NULL REFERENCES internal_legacy.security_group ON DELETE CASCADE,
    user_id bigint NOT NULL REFERENCES internal_legacy.internal_user ON DELETE CASCADE,
    PRIMARY KEY (group_name, user_id)
  )`,
  `CREATE INDEX group_member_user_user ON internal_legacy.group_member_user (user_id)`,
  `CREATE TABLE internal_legacy.group_member_group (
    group_name text COLLATE "C" NOT NULL REFERENCES internal_legacy.security_group ON DELETE CASCADE,
    member_group_name text COLLATE "C" NOT NULL REFERENCES internal_legacy.security_group ON DELETE CASCADE,
    PRIMARY KEY (group_name, member_group_name)
  )`,
  `CREATE INDEX group_member_group_member ON internal_legacy.group_member_group (member_group_name)`,
  `CREATE TABLE internal_legacy.access_point (access_point_name text COLLATE "C" PRIMARY KEY)`,
  `CREATE TABLE internal_legacy.access_point_grant (
    access_point_name text COLLATE "C" NOT NULL REFERENCES internal_legacy.access_point ON DELETE CASCADE,
    group_name text COLLATE "C" NOT NULL REFERENCES internal_legacy.security_group ON DELETE CASCADE,
    PRIMARY KEY (access_point_name, group_name)
  )`,
];
