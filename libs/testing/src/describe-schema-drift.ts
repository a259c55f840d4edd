import { readdirSync } from 'node:fs';
import { DataSource } from 'typeorm';
import type { EntityTarget, MigrationInterface, ObjectLiteral } from 'typeorm';
import { findMigrationProblems } from './migration-problems';
import { createTestDatabase } from './test-database';
import type { TestDatabase } from './test-database';

/**
 * A difference that TypeORM reports although entities and schema agree, or a table that has no entity on
 * purpose.
 */
interface ExpectedDrift {
  /**
   * Matches the whole statement that TypeORM would run (`DROP INDEX …`), or the name of a table without an
   * entity.
   */
  readonly matches: RegExp;
  /** Reason why the entities cannot express the difference. */
  readonly because: string;
}

/** One schema of a service: its entities, and the migrations that create its tables. */
export interface SchemaDrift {
  /** Name in the title of the suite. Default: `schema`. */
  readonly name?: string;
  readonly schema: string;
  readonly entities: readonly EntityTarget<ObjectLiteral>[];
  readonly migrations: readonly (new () => MigrationInterface)[];
  /** Expected differences. An entry that matches nothing fails the test. */
  readonly ignored?: readonly ExpectedDrift[];
  /** Statements to run before the migrations, e.g. to create another schema that they refer to. */
  readonly before?: readonly string[];
}

const MIGRATIONS_TABLE = 'migrations';
const CONNECTION = { type: 'postgres', installExtensions: false, uuidExtension: 'pgcrypto' } as const;

/**
 * Tests that entities and migrated schema agree: every table has an entity, and TypeORM's schema builder
 * finds nothing to change.
 *
 * Compares tables, columns (type, nullability, default, collation), primary and foreign keys, and the names
 * of unique constraints, CHECKs and indexes. Does not compare the expressions of CHECKs and partial indexes
 * or the column order of indexes, and does not see indexes that consist only of expressions.
 */
export function describeSchemaDrift(drift: SchemaDrift): void {
  describe(`entities and migrations of ${drift.name ?? drift.schema}`, () => {
    let database: TestDatabase;
    let found: string[];

    beforeAll(async () => {
      database = await createTestDatabase({ migrate: (url) => migrate(url, drift) });
      found = await findSchemaDrift(database.ownerUrl, drift);
    });
    afterAll(() => database.drop());

    const { ignored = [] } = drift;

    it('agree', () => {
      expect(found.filter((each) => !ignored.some(({ matches }) => matches.test(each)))).toEqual([]);
    });

    if (ignored.length > 0)
      it.each(ignored)('differ in $matches, because $because', ({ matches }) => {
        expect(found.some((each) => matches.test(each))).toBe(true);
      });
  });
}

async function migrate(url: string, { schema, migrations, before = [] }: SchemaDrift): Promise<void> {
  const dataSource = await new DataSource({
    ...CONNECTION,
    url,
    schema,
    migrations: [...migrations],
    migrationsTableName: MIGRATIONS_TABLE,
    extra: { options: `-c search_path="${schema}"` },
  }).initialize();
  try {
    await dataSource.query(`CREATE SCHEMA IF NOT EXISTS "${schema}"`);
    for (const statement of before) await dataSource.query(statement);
    await dataSource.runMigrations({ transaction: 'each' });
  } finally {
    await dataSource.destroy();
  }
}

/**
 * Returns the names of tables without an entity, and the statements that would make the schema match the
 * entities.
 */
export async function findSchemaDrift(
  url: string,
  { schema, entities }: Pick<SchemaDrift, 'schema' | 'entities'>,
): Promise<string[]> {
  // Without a search_path, PostgreSQL prefixes functions and sequences in defaults with their schema.
  const dataSource = await new DataSource({
    ...CONNECTION,
    url,
    schema,
    entities: [...entities] as (() => void)[],
  }).initialize();
  try {
    const mapped = dataSource.entityMetadatas.map(({ tableName }) => tableName);
    const rows = await dataSource.query<{ name: string }[]>(
      // Excludes partitions: the entity describes the partitioned table.
      `SELECT relname AS name FROM pg_class
       WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = $1::regnamespace ORDER BY 1`,
      [`"${schema}"`],
    );
    const tables = rows.map(({ name }) => name);
    const unmapped = tables.filter((name) => name !== MIGRATIONS_TABLE && !mapped.includes(name));
    const { upQueries } = await dataSource.driver.createSchemaBuilder().log();
    return [...unmapped, ...upQueries.map(({ query }) => query)];
  } finally {
    await dataSource.destroy();
  }
}

/**
 * Tests the migrations of a service. Every migration in `folder` must be in `listed`, because a bundle has no
 * folder to search. No migration may keep requests waiting.
 * @param released problems of migrations that were released before this check existed, by class name
 */
export function describeMigrations(
  folder: string,
  listed: readonly (new () => MigrationInterface)[],
  released: Readonly<Record<string, readonly RegExp[]>> = {},
): void {
  it('lists every migration file', () => {
    const numbers = readdirSync(folder).flatMap((file) => /^(\d+)-.*\.ts$/.exec(file)?.[1] ?? []);
    const listedNumbers = listed.map(({ name }) => /\d+$/.exec(name)?.[0]);
    expect(numbers).not.toEqual([]);
    expect(listedNumbers).toEqual(expect.arrayContaining(numbers));
  });

  it.each(listed.map((Migration) => ({ name: Migration.name, Migration })))(
    'keeps no request waiting: $name',
    async ({ name, Migration }) => {
      const excused = released[name] ?? [];
      const problems = await findMigrationProblems(Migration);
      expect(problems.filter((each) => !excused.some((pattern) => pattern.test(each)))).toEqual([]);
      for (const pattern of excused) expect(problems.some((each) => pattern.test(each))).toBe(true);
    },
  );
}
