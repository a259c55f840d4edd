import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Creates the person directory: customers, owners and residents. A stand-in for the real store, with the
 * columns that this service reads.
 */
export class CreatePersonDirectory1764000000100 implements MigrationInterface {
  readonly name = 'CreatePersonDirectory1764000000100';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of PERSON_DIRECTORY) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      `DROP TABLE person_directory.person_facility, person_directory.person_role, person_directory.person`,
    );
  }
}

const PERSON_DIRECTORY = [
  // The application folds user_name_key. personas holds bits of Customer, Resident and Owner.
  `CREATE TABLE person_directory.person (
    person_id bigint PRIMARY KEY CHECK (person_id > 0),
    user_name text NOT NULL,
    user_name_key text COLLATE "C" NOT NULL UNIQUE,
    display_name text NOT NULL,
    personas integer NOT NULL CHECK (personas & ~26 = 0),
    disabled boolean NOT NULL DEFAULT false,
    password_hash text,
    user_id bigint UNIQUE
  )`,
  `CREATE TABLE person_directory.person_role (
    person_id bigint NOT NULL REFERENCES person_directory.person ON DELETE CASCADE,
    role text NOT NULL,
    PRIMARY KEY (person_id, role)
  )`,
  `CREATE TABLE person_directory.person_facility (
    person_id bigint NOT NULL REFERENCES person_directory.person ON DELETE CASCADE,
    facility_id integer NOT NULL,
    PRIMARY KEY (person_id, facility_id)
  )`,
];

/**
 * Creates the internal legacy store: internal users, security groups and access points. Groups may contain
 * each other in cycles.
 */
export class CreateInternalLegacy1764000000200 implements MigrationInterface {
  readonly name = 'CreateInternalLegacy1764000000200';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of INTERNAL_LEGACY) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE internal_legacy.access_point_grant, internal_legacy.access_point,
      internal_legacy.group_member_group, internal_legacy.group_member_user, internal_legacy.security_group,
      internal_legacy.internal_user`);
  }
}

const INTERNAL_LEGACY = [
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

/** Creates the service-provider store: providers and their technicians who have an account. */
export class CreateServiceProviders1764000000300 implements MigrationInterface {
  readonly name = 'CreateServiceProviders1764000000300';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of SERVICE_PROVIDERS) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      `DROP TABLE service_providers.technician_facility, service_providers.technician, service_providers.provider`,
    );
  }
}

const SERVICE_PROVIDERS = [
  `CREATE TABLE service_providers.provider (
    provider_id bigint PRIMARY KEY CHECK (provider_id > 0),
    provider_name text NOT NULL,
    disabled boolean NOT NULL DEFAULT false
  )`,
  `CREATE TABLE service_providers.technician (
    technician_id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    provider_id bigint NOT NULL REFERENCES service_providers.provider,
    user_name text NOT NULL,
    user_name_key text COLLATE "C" NOT NULL UNIQUE,
    display_name text NOT NULL,
    disabled boolean NOT NULL DEFAULT false,
    password_hash text,
    person_id bigint UNIQUE
  )`,
  `CREATE TABLE service_providers.technician_facility (
    technician_id bigint NOT NULL REFERENCES service_providers.technician ON DELETE CASCADE,
    facility_id integer NOT NULL,
    PRIMARY KEY (technician_id, facility_id)
  )`,
];
