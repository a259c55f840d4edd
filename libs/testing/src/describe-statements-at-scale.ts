import { StatementPlans } from './statement-plans';
import type { PlanCacheMode, PlannedConnections, StatementPlan } from './statement-plans';
import { createTestDatabase } from './test-database';
import type { Migrate, TestDatabase } from './test-database';

/** Maximum rows of a sequential scan. A scan of up to this many rows counts as reading a small table. */
const MAX_SCANNED_ROWS = 1_000;
/**
 * Attempts per statement. A schema change, even in another database of the server, can make a session reload
 * its catalogue cache, and those pages count for the statement. So an expensive result is measured again: not
 * every attempt is affected.
 */
const MAX_ATTEMPTS = 3;
/** Timeout for filling the database, long enough for ten million rows. */
const FILL_MS = 1_800_000;

const SIZES = `
  SELECT format(E'size\\t%s\\t%s rows\\t%s bytes per row', oid::regclass, reltuples,
    round(pg_total_relation_size(oid) / reltuples)) AS line
  FROM pg_class WHERE relkind = 'r' AND relnamespace <> 'pg_catalog'::regnamespace AND reltuples >= 1000 ORDER BY oid`;

/** A statement of a service, or several related ones. */
export interface HotStatement<D> {
  readonly name: string;
  /** Maximum number of 8 KiB pages that each statement may touch, regardless of table size. */
  readonly pages: number;
  /**
   * Maximum rows that a sequential scan may read, for a statement that stops after that number. Default
   * 1,000.
   */
  readonly scannedRows?: number;
  /** Runs the statement through the service's own code. */
  readonly work: (dataSource: D) => Promise<unknown>;
  /**
   * True for a named prepared statement, for which the server may use a generic plan. Other statements are
   * always planned for their values.
   */
  readonly prepared?: boolean;
}

/** A service's database and the statements to measure. */
export interface Scale<D> {
  readonly migrate: Migrate;
  /**
   * Statements that fill the database; the last one analyses it. No `VACUUM` unless the test is about it:
   * plans must be good while much of a table is still to be vacuumed.
   */
  readonly fill: readonly string[];
  /**
   * Prepared statements that do not change an empty database. They are planned while the tables are empty,
   * and measured with that plan on full tables that were never analysed.
   */
  readonly early?: readonly HotStatement<D>[];
  /** Creates an uninitialised data source with a pool of one connection and no statement timeout. */
  readonly connect: (url: string) => D;
  readonly statements: readonly HotStatement<D>[];
}

/**
 * Returns the number of rows of a big table: TEST_SCALE_ROWS, by default 100,000. With fewer rows the planner
 * chooses sequential scans for some tables.
 */
export function scaleRows(): number {
  return Number(process.env['TEST_SCALE_ROWS'] ?? 100_000);
}

/**
 * Tests that the cost of statements does not depend on the size of the tables: none scans a big table, and
 * none touches more pages than its limit. If TEST_SCALE_ROWS is set, also prints the pages of each statement,
 * and the bytes per row of every table with its indexes.
 */
export function describeStatementsAtScale<D extends PlannedConnections>(scale: Scale<D>): void {
  describe(`statements at ${scaleRows().toLocaleString('en')} rows`, () => {
    let database: TestDatabase;
    const seen: string[] = [];
    const { statements, early = [] } = scale;
    const earlyPlans = new Map<string, readonly StatementPlan[]>();
    beforeAll(async () => {
      database = await createTestDatabase({ migrate: scale.migrate });
      const fill = async (from: number, to?: number): Promise<void> => {
        for (const statement of scale.fill.slice(from, to)) await database.query(statement);
      };
      const dataSource = scale.connect(StatementPlans.url(database.superuserUrl, 'force_generic_plan'));
      await dataSource.initialize();
      const plans = await StatementPlans.attach(dataSource);
      for (const { work } of early) await work(dataSource);
      // Keep the connection checked out: the pool closes idle connections, and the prepared plans would be
      // lost.
      const connection = dataSource.createQueryRunner();
      await connection.connect();
      await fill(0, -1);
      await connection.release();
      for (const statement of early)
        earlyPlans.set(statement.name, await plansOf(statement, plans, dataSource));
      await dataSource.destroy();
      await fill(-1);
      const sizes = await database.query<{ line: string }>(SIZES);
      seen.push(...sizes.map(({ line }) => line));
    }, FILL_MS);
    afterAll(async () => {
      await database.drop();
      if (process.env['TEST_SCALE_ROWS'] !== undefined) process.stdout.write(`${seen.join('\n')}\n`);
    });

    if (early.length > 0)
      it.each(early)('$name: at most $pages pages with a plan made for empty tables', (statement) => {
        const found = earlyPlans.get(statement.name) ?? [];
        expect(found).not.toEqual([]);
        expect(found.filter(({ pages }) => pages > statement.pages)).toEqual([]);
      });

    const prepared = statements.filter((each) => each.prepared === true);
    const superuser = (): string => database.superuserUrl;
    describePlans('force_custom_plan', { statements, connect: (url) => scale.connect(url), superuser, seen });
    if (prepared.length === 0) return;
    describePlans('force_generic_plan', {
      statements: prepared,
      connect: (url) => scale.connect(url),
      superuser,
      seen,
    });
  });
}

function describePlans<D extends PlannedConnections>(
  mode: PlanCacheMode,
  {
    statements,
    connect,
    superuser,
    seen,
  }: Pick<Scale<D>, 'statements' | 'connect'> & { superuser: () => string; seen: string[] },
): void {
  describe(`with ${mode}`, () => {
    let dataSource: D;
    let plans: StatementPlans;
    beforeAll(async () => {
      dataSource = connect(StatementPlans.url(superuser(), mode));
      await dataSource.initialize();
      plans = await StatementPlans.attach(dataSource);
    });
    afterAll(() => dataSource.destroy());

    it.each(statements)(
      '$name: at most $pages pages, by index',
      async (statement) => {
        const found = await plansOf(statement, plans, dataSource);
        seen.push(`${mode}\t${statement.name}\t${found.map((each) => each.pages).join(' + ')}`);
        expect(found).not.toEqual([]);
        expect(found.filter((plan) => isExpensive(plan, statement))).toEqual([]);
      },
      FILL_MS,
    );
  });
}

/**
 * Runs a statement until none of its plans is too expensive, at most three times. Returns the plans of the
 * last run.
 */
async function plansOf<D>(
  statement: HotStatement<D>,
  plans: StatementPlans,
  dataSource: D,
): Promise<readonly StatementPlan[]> {
  let found = await plans.of(() => statement.work(dataSource));
  for (
    let attempts = 1;
    attempts < MAX_ATTEMPTS && found.some((plan) => isExpensive(plan, statement));
    attempts += 1
  )
    found = await plans.of(() => statement.work(dataSource));
  return found;
}

function isExpensive(
  plan: StatementPlan,
  { pages, scannedRows = MAX_SCANNED_ROWS }: Pick<HotStatement<unknown>, 'pages' | 'scannedRows'>,
): boolean {
  return plan.pages > pages || plan.scans.some(({ rows }) => rows > scannedRows);
}

/**
 * Returns the size of a load test: the variable's value, else `full` on the build server (`npm test --
 * --all`), else `quick`.
 */
export function testSize(variable: string, { quick, full }: { quick: number; full: number }): number {
  return Number(process.env[variable] ?? (process.env['TEST_FULL_SIZE'] === 'true' ? full : quick));
}
