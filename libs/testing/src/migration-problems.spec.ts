import type { MigrationInterface, QueryRunner } from 'typeorm';
import { findMigrationProblems } from './migration-problems';

function migrationOf(statements: readonly string[], isTransactional = true): new () => MigrationInterface {
  return class Example1 implements MigrationInterface {
    readonly transaction = isTransactional;

    async up(runner: QueryRunner): Promise<void> {
      for (const statement of statements) await runner.query(statement);
    }

    down(): Promise<void> {
      return Promise.resolve();
    }
  };
}

describe('migrations that would keep requests waiting', () => {
  it.each([
    ['CREATE INDEX by_name ON app.people (name)', 'use createIndexConcurrently'],
    ['CREATE UNIQUE INDEX ON "app"."people" (name)', 'use createIndexConcurrently'],
    ['CREATE INDEX CONCURRENTLY by_name ON app.people (name)', 'transaction = false'],
    [`SET LOCAL lock_timeout = '1h'`, 'its own lock_timeout'],
    ['SET lock_timeout = 0', 'its own lock_timeout'],
    ['UPDATE app.people SET name = lower(name)', 'in batches'],
    ['DELETE FROM app.people', 'in batches'],
    ['ALTER TABLE app.people ALTER COLUMN name TYPE varchar', 'rewrites the table'],
    ['ALTER TABLE app.people ADD COLUMN id uuid DEFAULT gen_random_uuid()', 'differs from row to row'],
    ['ALTER TABLE app.people ALTER name SET NOT NULL', 'reads the table under its lock'],
    [`ALTER TABLE app.people\n ADD CONSTRAINT c CHECK (name <> '')`, 'NOT VALID'],
    ['ALTER TABLE app.people ADD CONSTRAINT u UNIQUE (name)', 'USING INDEX'],
  ])('finds %s', async (statement, problem) => {
    expect(await findMigrationProblems(migrationOf([statement]))).toEqual([expect.stringContaining(problem)]);
  });

  it.each(['ALTER TABLE app.people ADD age integer', 'DROP INDEX app.by_name', 'LOCK TABLE app.people'])(
    'finds a strong lock outside of a transaction: %s',
    async (statement) => {
      expect(await findMigrationProblems(migrationOf([statement], false))).toEqual([
        expect.stringContaining('a strong lock outside of a transaction'),
      ]);
    },
  );

  it.each([
    [['ALTER TABLE app.people ADD a integer', 'ALTER TABLE app.pets ADD b integer']],
    [['LOCK TABLE app.people, app.pets IN ACCESS EXCLUSIVE MODE']],
    [['DROP TABLE app.people', 'CREATE TRIGGER t BEFORE INSERT ON "app"."pets" EXECUTE FUNCTION f()']],
  ])('finds that %s locks two tables', async (statements) => {
    expect(await findMigrationProblems(migrationOf(statements))).toEqual([
      'locks several tables that already exist, use one migration for each: app.people, app.pets',
    ]);
  });

  it.each([
    [['ALTER TABLE app.people ADD a integer', 'ALTER TABLE app.people ADD b integer'], true],
    [['CREATE TABLE app.pets (name text)', 'ALTER TABLE app.pets ADD a int', 'DROP TABLE app.people'], true],
    [['ALTER TABLE app.people ADD COLUMN age integer NOT NULL DEFAULT 0'], true],
    [['CREATE TABLE app.pets (name text)', 'CREATE INDEX pets_by_name ON app.pets (name)'], true],
    [['CREATE INDEX CONCURRENTLY by_name ON app.people (name)', 'DROP INDEX CONCURRENTLY app.by_age'], false],
    [['ALTER TABLE app.people SET (autovacuum_vacuum_insert_scale_factor = 0.01)'], false],
    [[`CREATE FUNCTION f() RETURNS void LANGUAGE sql AS $$ DELETE FROM app.people $$`], true],
  ])('finds nothing in %s', async (statements, isTransactional) => {
    expect(await findMigrationProblems(migrationOf(statements, isTransactional))).toEqual([]);
  });
});
