import type { MigrationInterface, QueryRunner } from 'typeorm';

/** The person directory: customers, owners and residents. A stand-in with the columns this service reads. */
export class CreatePersonDirectory1764000000100 implements MigrationInterface {
  readonly name = 'CreatePersonDirectory1764000000100';

  async up(runner: QueryRunner): Promise<void> {
    for (const statement of STATEMENTS) await runner.query(statement);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      `DROP TABLE person_directory.person_facility, person_directory.person_role, person_directory.person`,
    );
  }
}

const STATEMENTS = [
  // user_name_key is folded by the application; personas: Customer, Resident, Owner.
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
