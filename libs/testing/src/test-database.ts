/** A database of its own for one suite. */
export interface TestDatabase {
  url: string;
  /** The same database as the role that owns it; the server's administrator here. */
  ownerUrl: string;
  /** Rows of one statement, run as the owner. */
  query<R extends object = Record<string, unknown>>(sql: string, params?: readonly unknown[]): Promise<R[]>;
  drop(): Promise<void>;
}

/** A freshly migrated database with a random name on the server of TEST_DATABASE_URL. */
export async function createTestDatabase(options: {
  migrate: (url: string) => Promise<void>;
}): Promise<TestDatabase> {
  throw new Error(`not yet: ${options.migrate.name}`);
}
