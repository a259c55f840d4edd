/** `npm run costs`: what one request of each hot operation costs PostgreSQL, in counts that are the same on every machine, and processor time. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { format } from 'prettier';
import { commandLine, onEndSignal, runMain } from '#platform/command-line.ts';
import { WORKSPACE } from '#platform/state-folder.ts';
import { PrivateServers, type TestPlatform } from '#platform/test-platform.ts';
import { eventually } from '#platform/waiting.ts';
import { HttpLoad, repeat } from '../load.ts';
import { processorTime } from '../processor-time.ts';
import { allocatedKilobytes } from './allocations.ts';
import { type NextRequest, type Operation, OPERATIONS } from './operations.ts';

/** Of one request, on average; one after the other on one connection, so that no two share a statement. */
type Counts = Readonly<Record<(typeof COUNTS)[number], number>>;

/** Of one request, on average, with many at once. */
type Work = Readonly<Record<'serviceMicros' | 'serviceKilobytes' | 'postgresqlMicros', number>>;

const COUNTS = ['transactions', 'pages', 'walBytes'] as const;
/** What background work adds on a slow machine, where it falls to fewer requests. A check allows that, and twice the pages and bytes:
 *  it is after one more transaction, or a page read for each of many rows. */
const BACKGROUND: Counts = { transactions: 0.5, pages: 10, walBytes: 1_000 };

const CONNECTIONS = 32;
const WARM_UP_SECONDS = 3;
const COUNTED = 1_000;
const PAGE = join(WORKSPACE, 'docs/performance.md');
const BEGIN = '<!-- costs: written by npm run costs -->';
const END = '<!-- end of costs -->';

async function main(): Promise<void> {
  const { write, seconds, check } = commandLine(
    'npm run costs',
    '[flags]',
    'Counts what a request of each hot operation costs.',
  )
    .option('--seconds <number>', 'length of the load for the processor time', Number, 5)
    .option('--no-write', 'leave docs/performance.md as it is')
    .option(
      '--check',
      'only the counts: fail where a request needs one more transaction, or twice the pages or bytes',
      false,
    )
    .parse()
    .opts<{ write: boolean; seconds: number; check: boolean }>();
  const servers = await PrivateServers.open({ nodeOptions: ['--trace-gc'] }, (line) =>
    console.log(`▸ ${line}`),
  );
  onEndSignal(() => void servers.close().then(() => process.exit(130)));
  try {
    const costs: [id: string, Counts & Partial<Work>][] = [];
    for (const service of ['auth', 'settings', 'task'] as const) {
      const platform = await servers.startPlatform(service === 'auth' ? [service] : ['auth', service]);
      for (const operation of OPERATIONS.filter((each) => each.service === service)) {
        costs.push([operation.id, await costOf(operation, platform, check ? null : seconds)]);
        console.log(`  ${JSON.stringify(costs.at(-1))}`);
      }
      await platform.stop();
    }
    if (check) process.exitCode = reportGrowth(costs) ? 1 : 0;
    else if (write) await writeTable(costs as [string, Counts & Work][]);
  } finally {
    await servers.close();
  }
  process.exit();
}

/** @param seconds of the load for the processor time; null: without */
async function costOf(
  { service, prepare }: Operation,
  platform: TestPlatform,
  seconds: number | null,
): Promise<Counts & Partial<Work>> {
  const load = new HttpLoad(platform.url(service), CONNECTIONS);
  try {
    const send = sender(load, await prepare(platform, load));
    await repeat(WARM_UP_SECONDS, CONNECTIONS, send);
    const before = await counters(platform, service);
    for (let sent = 0; sent < COUNTED; sent += 1) await send(0);
    const after = await counters(platform, service);
    const each = (name: keyof Counts): number => (after[name] - before[name]) / COUNTED;
    const counts = { transactions: each('transactions'), pages: each('pages'), walBytes: each('walBytes') };
    if (seconds === null) return counts;
    const program = platform.programs.find(({ name }) => name.startsWith(service))!;
    const logged = program.log().length;
    const [startedWith, work] = [processorTime(), await repeat(seconds, CONNECTIONS, send)];
    const endedWith = processorTime();
    if (startedWith === null || endedWith === null)
      throw new Error('this system does not tell processor time');
    const micros = (role: 'program' | 'postgresql'): number =>
      Math.round(((endedWith[role] - startedWith[role]) * 1e6) / work.latenciesMs.length);
    return {
      ...counts,
      serviceMicros: micros('program'),
      serviceKilobytes: allocatedKilobytes(program.log().slice(logged)) / work.latenciesMs.length,
      postgresqlMicros: micros('postgresql'),
    };
  } finally {
    await load.close();
  }
}

/** Says which counts are above those of the page. Gives whether there are any. */
function reportGrowth(costs: readonly (readonly [id: string, counts: Counts])[]): boolean {
  const rows = new Map(
    readFileSync(PAGE, 'utf8')
      .split('\n')
      .map((line) => line.split('|').map((cell) => cell.trim()))
      .map(([, id = '', ...cells]) => [id, cells.map(Number)]),
  );
  const growth = costs.flatMap(([id, counts]) =>
    COUNTS.flatMap((name, column) => {
      const documented = rows.get(id)?.[column] ?? 0;
      const allowed = documented * (name === 'transactions' ? 1 : 2) + BACKGROUND[name];
      return counts[name] <= allowed
        ? []
        : [`✘ ${id}: ${name} ${String(documented)} → ${String(counts[name])}`];
    }),
  );
  console.log(growth.join('\n') || '✔ no request costs more than docs/performance.md says');
  return growth.length > 0;
}

/** Sends a worker's next request, which may need what the last one answered. */
function sender(load: HttpLoad, next: NextRequest): (worker: number) => Promise<void> {
  const answers = new Map<number, string>();
  return async (worker) =>
    void answers.set(worker, await load.send(next(worker, answers.get(worker) ?? null)));
}

const SESSIONS = 'FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()';
const COUNTERS = `SELECT xact_commit::float8 AS transactions, (blks_hit + blks_read)::float8 AS pages,
  (SELECT wal_bytes::float8 FROM pg_stat_wal) AS "walBytes" FROM pg_stat_database WHERE datname = current_database()`;

/** A session tells its counts when it ends; the service opens others. */
async function counters(platform: TestPlatform, service: Operation['service']): Promise<Counts> {
  const query = <Row extends object>(text: string): Promise<Row[]> => platform.query<Row>(service, text);
  await query('CHECKPOINT');
  const ended = await query<{ pid: number }>(`SELECT pid, pg_terminate_backend(pid) ${SESSIONS}`);
  return eventually(async () => {
    const sessions = await query<{ pid: number }>(`SELECT pid ${SESSIONS}`);
    const [row] = await query<Counts>(COUNTERS);
    if (row === undefined || sessions.some(({ pid }) => ended.some((one) => one.pid === pid)))
      throw new Error('a session does not end');
    return row;
  });
}

async function writeTable(costs: readonly (readonly [id: string, cost: Counts & Work])[]): Promise<void> {
  const rows = costs.map(
    ([id, { transactions, pages, walBytes, serviceMicros, serviceKilobytes, postgresqlMicros }]) =>
      `| ${id} | ${transactions.toFixed(1)} | ${Math.round(pages)} | ${Math.round(walBytes)} | ${serviceMicros} | ${postgresqlMicros} | ${serviceKilobytes === 0 ? '–' : Math.round(serviceKilobytes)} |`,
  );
  const table = [
    '| operation | transactions | pages | WAL bytes | µs service | µs PostgreSQL | KB service |',
    '| --- | ---: | ---: | ---: | ---: | ---: | ---: |',
    ...rows,
  ];
  const page = readFileSync(PAGE, 'utf8');
  const written = `${page.slice(0, page.indexOf(BEGIN) + BEGIN.length)}\n\n${table.join('\n')}\n\n${page.slice(page.indexOf(END))}`;
  writeFileSync(PAGE, await format(written, { parser: 'markdown' }));
}

runMain(main);
