import { DataSource } from 'typeorm';
import type { MigrationInterface, QueryRunner } from 'typeorm';
import { postgresOptions, runMigrations } from '../src';
import type { PostgresSettings } from '../src';

/** Schema of a minimal service: one table of counters. */
class CreateCounters1700000000001 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(
      'CREATE TABLE counter (name text PRIMARY KEY, value integer NOT NULL CHECK (value >= 0))',
    );
    await runner.query("INSERT INTO counter VALUES ('hits', 0)");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE counter');
  }
}

class AddNotes1700000000002 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    // Long enough for a second process to interfere if no lock excluded it.
    await runner.query('SELECT pg_sleep(0.2)');
    await runner.query(
      'CREATE TABLE note (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, text text NOT NULL)',
    );
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE note');
  }
}

export const MIGRATION_NAMES = ['CreateCounters1700000000001', 'AddNotes1700000000002'];

export function counterSettings(url: string, overrides: Partial<PostgresSettings> = {}): PostgresSettings {
  return {
    url,
    schema: 'counting',
    applicationName: 'counting-test',
    entities: [],
    migrations: [CreateCounters1700000000001, AddNotes1700000000002],
    poolSize: 20,
    ...overrides,
  };
}

/**
 * Migrates a database for `createTestDatabase`, with the grants that a counting service needs for `appRole`.
 */
export function migrateCounters(ownerUrl: string, appRole: string): Promise<string[]> {
  const appRoleGrants = (role: string): string[] => [
    `GRANT SELECT, INSERT, UPDATE, DELETE ON counting.counter, counting.note TO ${role}`,
  ];
  return runMigrations(counterSettings(ownerUrl), { appRole, appRoleGrants });
}

/** Connects as the application's role, which the test database's `url` names. */
export function connectCounters(url: string, overrides: Partial<PostgresSettings> = {}): Promise<DataSource> {
  return new DataSource(postgresOptions(counterSettings(url, overrides))).initialize();
}
