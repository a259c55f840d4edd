import type { PrivateServers, TestPlatform } from '#platform/test-platform.ts';
import { eventually } from '#platform/waiting.ts';
import { HttpLoad, repeat } from '../load.ts';
import { processorTime } from '../processor-time.ts';
import { allocatedKilobytes } from './allocations.ts';
import { type Operation, OPERATIONS, sender } from './operations.ts';
import { markdownTable, readTable, REQUEST_COSTS } from './page.ts';

/** Of one request, on average; one after the other on one connection, so that no two share a statement. */
type Counts = Readonly<Record<(typeof COUNTS)[number], number>>;

/** Of one request, on average, with many at once. */
type Work = Readonly<Record<'serviceMicros' | 'serviceKilobytes' | 'postgresqlMicros', number>>;

const COUNTS = ['transactions', 'pages', 'walBytes'] as const;
/** What background work adds on a slow machine, where it falls to fewer requests. A check allows that, and
 *  twice the pages and bytes:
 *  it is after one more transaction, or a page read for each of many rows. */
const BACKGROUND: Counts = { transactions: 0.5, pages: 10, walBytes: 500 };

const CONNECTIONS = 32;
const WARM_UP_SECONDS = 3;
const COUNTED = 1_000;
/** A check counts again, up to so often, what seems to cost more: a background job cannot fall into every
 *  one. */
const TRIES = 4;

/**
 * The table of what requests cost one after the other, and with many at once. @param seconds of the load for
 * the processor time
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

/** One line for each count that is above what the page allows. */
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

/** @param seconds of the load for the processor time; null: without */
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
      throw new Error('this system does not tell processor time');
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

/** Counts until nothing has grown, and keeps the lowest of each count: what PostgreSQL does besides only
 *  adds. */
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

/** After a checkpoint the first change of each page writes the whole page: how many that hits says nothing
 *  of a request. */
export async function leaveOutPageImages(platform: TestPlatform): Promise<void> {
  await platform.query('auth', 'ALTER SYSTEM SET full_page_writes = off');
  await platform.query('auth', 'SELECT pg_reload_conf()');
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
