import type { PrivateServers, TestPlatform } from '#platform/test-platform.ts';
import { eventually } from '#platform/waiting.ts';
import { HttpLoad, repeat } from '../load.ts';
import { processorTime } from '../processor-time.ts';
import { allocatedKilobytes } from './allocations.ts';
import { type Operation, OPERATIONS, sender } from './operations.ts';
import { markdownTable, readTable, REQUEST_COSTS } from './page.ts';

/**
 * Average counts per request, with sequential requests on one connection, so that no two share a statement.
 */
type Counts = Readonly<Record<(typeof COUNTS)[number], number>>;

/** Average processor time and allocations per request, with many concurrent requests. */
type Work = Readonly<Record<'serviceMicros' | 'serviceKilobytes' | 'postgresqlMicros', number>>;

const COUNTS = ['transactions', 'pages', 'walBytes'] as const;
/**
 * Allowance per request for background work: on a slow machine fewer requests share that work. A check allows
 * this, plus twice the documented pages and bytes. It must still find an additional transaction, or a page
 * read per row.
 */
const BACKGROUND: Counts = { transactions: 0.5, pages: 10, walBytes: 500 };

const CONNECTIONS = 32;
const WARM_UP_SECONDS = 3;
const COUNTED = 1_000;
/** Maximum number of counts of an operation in a check. A background job cannot disturb all of them. */
const TRIES = 4;

/**
 * Measures the costs of sequential and of concurrent requests, as a table.
 * @param seconds duration of the load for the processor time
 */
export async function requestCosts(servers: PrivateServers, seconds: number): Promise<string[]> {
  const rows: string[][] = [];
  await forEachOperation(servers, async (operation, platform) => {
    const { work, ...counts } = await costOf(operation, platform, seconds);
    console.log(`  ${JSON.stringify([operation.id, counts, work])}`);
    rows.push([operation.id, ...cells(counts, work!)]);
  });
  const head = ['operation', 'transactions', 'pages', 'WAL bytes'];
  return markdownTable([...head, 'µs service', 'µs PostgreSQL', 'KB service'], rows);
}

/** Returns one line for each count that exceeds its bound, which depends on the documented count. */
export async function grownCounts(servers: PrivateServers): Promise<string[]> {
  const lines: string[] = [];
  await forEachOperation(servers, async (operation, platform) => {
    const counts = await lowestCounts(operation, platform);
    console.log(`  ${JSON.stringify([operation.id, counts])}`);
    lines.push(...growthOf(operation.id, counts));
  });
  return lines;
}

async function forEachOperation(
  servers: PrivateServers,
  measure: (operation: Operation, platform: TestPlatform) => Promise<void>,
): Promise<void> {
  for (const service of ['auth', 'settings', 'task'] as const) {
    const platform = await servers.startPlatform(service === 'auth' ? [service] : ['auth', service]);
    await leaveOutPageImages(platform);
    for (const operation of OPERATIONS.filter((each) => each.service === service))
      await measure(operation, platform);
    await platform.stop();
  }
}

function cells({ transactions, pages, walBytes }: Counts, work: Work): string[] {
  const { serviceMicros, serviceKilobytes, postgresqlMicros } = work;
  return [
    transactions.toFixed(1),
    String(Math.round(pages)),
    String(Math.round(walBytes)),
    String(serviceMicros),
    String(postgresqlMicros),
    serviceKilobytes === 0 ? '–' : String(Math.round(serviceKilobytes)),
  ];
}

/** Measures one operation. @param seconds duration of the load for the processor time. Null: counts only */
async function costOf(
  { service, prepare }: Operation,
  platform: TestPlatform,
  seconds: number | null,
): Promise<Counts & { work?: Work }> {
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
      throw new Error('processor time is read from /proc, which only Linux has');
    const micros = (role: 'program' | 'postgresql'): number =>
      Math.round(((endedWith[role] - startedWith[role]) * 1e6) / work.latenciesMs.length);
    return {
      ...counts,
      work: {
        serviceMicros: micros('program'),
        serviceKilobytes: allocatedKilobytes(program.log().slice(logged)) / work.latenciesMs.length,
        postgresqlMicros: micros('postgresql'),
      },
    };
  } finally {
    await load.close();
  }
}

/**
 * Counts up to four times, until no count exceeds its bound. Returns the lowest counts, because background
 * work can only raise a count.
 */
async function lowestCounts(operation: Operation, platform: TestPlatform): Promise<Counts> {
  let lowest: Counts = await costOf(operation, platform, null);
  for (let tries = 1; tries < TRIES && growthOf(operation.id, lowest).length > 0; tries += 1) {
    const again: Counts = await costOf(operation, platform, null);
    const lower = (name: keyof Counts): number => Math.min(lowest[name], again[name]);
    lowest = { transactions: lower('transactions'), pages: lower('pages'), walBytes: lower('walBytes') };
  }
  return lowest;
}

function growthOf(id: string, counts: Counts): string[] {
  const row = readTable(REQUEST_COSTS).get(id) ?? [];
  return COUNTS.flatMap((name, column) => {
    const documented = Number(row[column] ?? 0);
    const allowed = documented * (name === 'transactions' ? 1 : 2) + BACKGROUND[name];
    return counts[name] <= allowed
      ? []
      : [`✘ ${id}: ${name} ${String(documented)} → ${String(counts[name])}`];
  });
}

/**
 * Disables full-page images. After a checkpoint the first change of each page would write the whole page,
 * which depends on chance and not on the request.
 */
export async function leaveOutPageImages(platform: TestPlatform): Promise<void> {
  await platform.query('auth', 'ALTER SYSTEM SET full_page_writes = off');
  await platform.query('auth', 'SELECT pg_reload_conf()');
}

const SESSIONS = 'FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()';
const COUNTERS = `SELECT xact_commit::float8 AS transactions, (blks_hit + blks_read)::float8 AS pages,
  (SELECT wal_bytes::float8 FROM pg_stat_wal) AS "walBytes" FROM pg_stat_database WHERE datname = current_database()`;

/**
 * Reads PostgreSQL's counters. Ends all sessions first, because a session flushes its counters when it ends.
 */
async function counters(platform: TestPlatform, service: Operation['service']): Promise<Counts> {
  const query = <Row extends object>(text: string): Promise<Row[]> => platform.query<Row>(service, text);
  await query('CHECKPOINT');
  const ended = await query<{ pid: number }>(`SELECT pid, pg_terminate_backend(pid) ${SESSIONS}`);
  return eventually(async () => {
    const sessions = await query<{ pid: number }>(`SELECT pid ${SESSIONS}`);
    const [row] = await query<Counts>(COUNTERS);
    if (row === undefined || sessions.some(({ pid }) => ended.some((one) => one.pid === pid)))
      throw new Error('a session has not ended');
    return row;
  });
}
