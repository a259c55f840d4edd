import type { TestDatabase } from '@platform/testing';

/** Makes every statement of a kind, e.g. `INSERT ON task.schedules`, take so long, so that what it belongs to is under way for as
 *  long as a test needs. */
export async function slowDown(database: TestDatabase, kind: string, durationMs: number): Promise<void> {
  await database.query(
    `CREATE OR REPLACE FUNCTION public.take_time() RETURNS trigger LANGUAGE plpgsql AS
     $$ BEGIN PERFORM pg_sleep(${String(durationMs / 1_000)}); RETURN NULL; END $$`,
  );
  await database.query(
    `CREATE TRIGGER take_time BEFORE ${kind} FOR EACH STATEMENT EXECUTE FUNCTION public.take_time()`,
  );
}

/** Ends what `slowDown` began, once the statements under way are over. */
export async function speedUp(database: TestDatabase): Promise<void> {
  await database.query('DROP FUNCTION public.take_time() CASCADE');
}

/** How many statements are taking their time now. */
export async function slowStatements(database: TestDatabase): Promise<number> {
  const [row] = await database.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`,
  );
  return row?.count ?? 0;
}
