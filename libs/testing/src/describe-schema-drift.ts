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
   * Matches the whole statement that TypeORM would run (`DROP INDEX …`), or the name of the table without an
   * entity.
   */
  readonly matches: RegExp;
  /** Why the entities cannot say it. */
  readonly because: string;
}

/** One schema of a service: its entities, and the migrations that make its tables. */
export interface SchemaDrift {
  /** Shown in the name of the suite; the schema unless given. */
  readonly name?: string;
  readonly schema: string;
  readonly entities: readonly EntityTarget<ObjectLiteral>[];
  readonly migrations: readonly (new () => MigrationInterface)[];
  /** Each entry must match something; one that no longer does fails the test. */
  readonly ignored?: readonly ExpectedDrift[];
  /** Statements that the migrations rely on, e.g. another schema that they refer to. They run before them. */
  readonly before?: readonly string[];
}

const MIGRATIONS_TABLE = 'migrations';
const CONNECTION = { type: 'postgres', installExtensions: false, uuidExtension: 'pgcrypto' } as const;

/**
 * Tests that entities and migrated schema agree: every table has an entity, and TypeORM's own schema builder
 * finds nothing to change. It compares tables, columns (type, nullability, default, collation), primary and
 * foreign keys, and the names of unique constraints, CHECKs and indexes. It does not compare the expressions
 * of CHECKs and partial indexes, nor the order of an index's columns, and does not see indexes that consist
 * of expressions only.
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
 * Tables without an entity, by name, and the statements that would change the schema to what the entities
 * say.
 */
export async function findSchemaDrift(
  url: string,
  { schema, entities }: Pick<SchemaDrift, 'schema' | 'entities'>,
): Promise<string[]> {
  // Without a search_path, PostgreSQL names functions and sequences in defaults with their schema.
  const dataSource = await new DataSource({
    ...CONNECTION,
    url,
    schema,
    entities: [...entities] as (() => void)[],
  }).initialize();
  try {
    const mapped = dataSource.entityMetadatas.map(({ tableName }) => tableName);
    const rows = await dataSource.query<{ name: string }[]>(
      // Partitions are described by the table that they belong to.
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
 * Tests of a service's migrations: each in `folder` is among `listed`, because a bundle has no folder to
 * search; none keeps requests waiting.
 * @param released problems of migrations that were released before this was checked, by class
 */
export function describeMigrations(
  folder: string,
  listed: readonly (new () => MigrationInterface)[],
  released: Readonly<Record<string, readonly RegExp[]>> = {},
): void {
  it('lists every migration that there is a file for', () => {
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
