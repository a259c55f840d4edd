import { StatementPlans } from './statement-plans';
import type { PlanCacheMode, PlannedConnections, StatementPlan } from './statement-plans';
import { createTestDatabase } from './test-database';
import type { Migrate, TestDatabase } from './test-database';

/** Rows read one after another that still count as a look into a small table. */
const MAX_SCANNED_ROWS = 1_000;
/** Whoever changes a schema, also in another database of the server, may have a session read the catalogues
 *  again, and those pages count
 *  for its statement. So what costs too much is tried again: that does not fall into every try. */
const TRIES = 3;
/** Enough for ten million rows. */
const FILL_MS = 1_800_000;

const SIZES = `
  SELECT format(E'size\\t%s\\t%s rows\\t%s bytes per row', oid::regclass, reltuples,
    round(pg_total_relation_size(oid) / reltuples)) AS line
  FROM pg_class WHERE relkind = 'r' AND relnamespace <> 'pg_catalog'::regnamespace AND reltuples >= 1000 ORDER BY oid`;

/** A statement of a service, or several that belong together. */
export interface HotStatement<D> {
  readonly name: string;
  /** Pages of 8 KiB that each statement may touch, however many rows there are. */
  readonly pages: number;
  /** Rows that it may read without an index, because it stops there; 1,000 unless given. */
  readonly scannedRows?: number;
  /** Does it, through the service's own code. */
  readonly work: (dataSource: D) => Promise<unknown>;
  /**
   * Prepared by name: the server may decide to plan it for any values. Others are planned with theirs each
   * time.
   */
  readonly prepared?: boolean;
}

/** A service's database and what is asked of it. */
export interface Scale<D> {
  readonly migrate: Migrate;
  /** Statements that fill the database, the last of which analyses it. Not `VACUUM` unless that is the
   *  point: plans must hold while much of a table is yet to be vacuumed. */
  readonly fill: readonly string[];
  /**
   * Prepared statements that leave an empty database as it is: tried with a plan made then, on tables that
   * were never analysed since.
   */
  readonly early?: readonly HotStatement<D>[];
  /** A data source, not initialised, with a pool of one connection and no limit on statements. */
  readonly connect: (url: string) => D;
  readonly statements: readonly HotStatement<D>[];
}

/**
 * Rows of a big table in tests about scale: TEST_SCALE_ROWS, 100,000 unless set; with fewer the planner reads
 * some from end to end.
 */
export function scaleRows(): number {
  return Number(process.env['TEST_SCALE_ROWS'] ?? 100_000);
}

/**
 * Tests that statements cost the same however big the tables are: none reads a table from end to end, and
 * none touches more pages than it names. With TEST_SCALE_ROWS set it also prints what each touched, and the
 * bytes per row of every table with its indexes.
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
      // Held meanwhile: the pool closes a connection that is idle for long, and its plans go with it.
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
      it.each(early)('$name: at most $pages pages by a plan made for empty tables', (statement) => {
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
  describe(`by ${mode}`, () => {
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

/** The plans of a statement; of its last try if all of them cost too much. */
async function plansOf<D>(
  statement: HotStatement<D>,
  plans: StatementPlans,
  dataSource: D,
): Promise<readonly StatementPlan[]> {
  let found = await plans.of(() => statement.work(dataSource));
  for (let tries = 1; tries < TRIES && found.some((plan) => isExpensive(plan, statement)); tries += 1)
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
 * How much a test with a load does: what its variable says, else `full` on the build server (`npm test --
 * --all`), else `quick`.
 */
export function testSize(variable: string, { quick, full }: { quick: number; full: number }): number {
  return Number(process.env[variable] ?? (process.env['TEST_FULL_SIZE'] === 'true' ? full : quick));
}
