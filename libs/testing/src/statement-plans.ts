/** Whether PostgreSQL makes custom plans for the parameters' values, or generic plans. */
export type PlanCacheMode = 'force_custom_plan' | 'force_generic_plan';

/** The execution of one statement. Statements inside functions and foreign key checks are included. */
export interface StatementPlan {
  readonly statement: string;
  /** Number of 8 KiB pages touched, cached or not. */
  readonly pages: number;
  /** Sequential scans, with the rows read. */
  readonly scans: readonly { readonly table: string; readonly rows: number }[];
}

/** The members of a data source that `StatementPlans` needs. The pool must have one connection. */
export interface PlannedConnections {
  initialize(): Promise<unknown>;
  destroy(): Promise<void>;
  createQueryRunner(): { connect(): Promise<unknown>; release(): Promise<void> };
}

interface NoticingClient {
  on(event: 'notice', listener: (notice: { message?: string }) => void): unknown;
  query(sql: string): Promise<unknown>;
}

interface PlanNode {
  'Node Type': string;
  'Subplan Name'?: string;
  'CTE Name'?: string;
  'Relation Name'?: string;
  'Actual Rows'?: number;
  'Actual Loops'?: number;
  'Rows Removed by Filter'?: number;
  'Shared Hit Blocks'?: number;
  'Shared Read Blocks'?: number;
  Plans?: PlanNode[];
}

const SERVER_OPTIONS: Readonly<Record<string, string>> = {
  session_preload_libraries: 'auto_explain',
  'auto_explain.log_min_duration': '0',
  'auto_explain.log_analyze': 'on',
  'auto_explain.log_buffers': 'on',
  'auto_explain.log_timing': 'off',
  'auto_explain.log_format': 'json',
  'auto_explain.log_level': 'notice',
  'auto_explain.log_nested_statements': 'on',
};

/**
 * Records the plans of a program's own statements as they ran, by means of `auto_explain`. So no copy of a
 * statement can drift from the original, and every plan was executed.
 */
export class StatementPlans {
  private plans: StatementPlan[] = [];

  private constructor(private readonly client: NoticingClient) {}

  /** Returns a superuser URL whose sessions report the plan of every statement. */
  static url(superuserUrl: string, planCacheMode: PlanCacheMode): string {
    const url = new URL(superuserUrl);
    const options = Object.entries({ ...SERVER_OPTIONS, plan_cache_mode: planCacheMode });
    url.searchParams.set('options', options.map(([name, value]) => `-c ${name}=${value}`).join(' '));
    return url.toString();
  }

  /** Listens to the single connection of a data source created with `StatementPlans.url`. */
  static async attach(dataSource: PlannedConnections): Promise<StatementPlans> {
    const runner = dataSource.createQueryRunner();
    const client = (await runner.connect()) as NoticingClient;
    const plans = new StatementPlans(client);
    client.on('notice', ({ message = '' }) => {
      const json = /^duration: .* plan:\n([^]*)$/.exec(message)?.[1];
      if (json !== undefined) plans.plans.push(readPlan(json));
    });
    await runner.release();
    return plans;
  }

  /** Returns the plans of the statements that `work` runs. */
  async of(work: () => Promise<unknown>): Promise<readonly StatementPlan[]> {
    this.plans = [];
    await work();
    // The plan of a statement inside a transaction arrives when the connection runs the next statement.
    await this.client.query(FLUSH);
    return this.plans.filter(({ statement }) => statement !== FLUSH);
  }
}

const FLUSH = `SELECT 'flush'`;

function readPlan(json: string): StatementPlan {
  const { Plan: root, 'Query Text': text } = JSON.parse(json) as { Plan: PlanNode; 'Query Text': string };
  return { statement: text.trim(), pages: pagesOf(root) + pagesWrittenBeside(root), scans: scansOf(root) };
}

/**
 * Returns the pages of data-modifying WITH queries that no part of the plan reads. They run after the main
 * plan, so its figures do not include them.
 */
function pagesWrittenBeside(root: PlanNode): number {
  const read = new Set(nodesOf(root).map((node) => node['CTE Name']));
  const beside = (root.Plans ?? []).filter((plan) => {
    const [, name] = /^CTE (.*)$/.exec(plan['Subplan Name'] ?? '') ?? [];
    return name !== undefined && plan['Node Type'] === 'ModifyTable' && !read.has(name);
  });
  return beside.reduce((sum, plan) => sum + pagesOf(plan), 0);
}

function nodesOf(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(nodesOf)];
}

function pagesOf(node: PlanNode): number {
  return (node['Shared Hit Blocks'] ?? 0) + (node['Shared Read Blocks'] ?? 0);
}

function scansOf(root: PlanNode): StatementPlan['scans'] {
  return nodesOf(root)
    .filter((node) => node['Node Type'] === 'Seq Scan')
    .map((node) => ({
      table: node['Relation Name'] ?? '?',
      rows:
        ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)) * (node['Actual Loops'] ?? 1),
    }));
}
