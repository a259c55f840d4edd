import { readProc, residentBytes } from '#platform/proc.ts';
import { SERVICE_NAMES, type ServiceName, serviceOf } from '#platform/programs.ts';
import type { TestPlatform } from '#platform/test-platform.ts';
import { type ByPart, byPart, PARTS, type Usage, watchIdle } from './usage.ts';
import { Watchers } from './watchers.ts';
import { startReplica } from './whole-platform.ts';

export const IDLE_HEAD = ['process', ...PARTS.map((part) => `ms/s ${part}`), 'MB', 'MB after load'];
const NOTHING = '–';

/** Measures the idle usage that each process adds, as table rows, and that of the whole platform. */
export async function idleCosts(
  platform: TestPlatform,
  seconds: number,
): Promise<{ rows: string[][]; idle: Usage<void> }> {
  const rows: string[][] = [];
  let before: ByPart = byPart(() => 0);
  const add = async (name: string, megabytes: number | null): Promise<Usage<void>> => {
    const usage = await watchIdle(platform, seconds);
    const added = PARTS.map((part) => Math.max(0, usage.cores[part] - before[part]) * 1_000);
    rows.push([name, ...added.map((figure) => figure.toFixed(1)), megabytesText(megabytes)]);
    console.log(`  ${rows.at(-1)!.join('  ')}`);
    // Keep the highest usage: after a slightly lower measurement the difference would be added to the next
    // process.
    const highest = before;
    before = byPart((part) => Math.max(highest[part], usage.cores[part]));
    return usage;
  };
  await add('the servers', null);
  for (const name of SERVICE_NAMES) {
    await startReplica(platform, name);
    await add(serviceOf(name).name, megabytesOf(platform, name));
  }
  const watcher = new Watchers(platform, 1);
  await add('settings-service, watched', null);
  await watcher.end();
  await platform.startNeighbours();
  return { rows, idle: await watchIdle(platform, seconds) };
}

/**
 * Adds the memory of each replica after loads to the rows of `idleCosts`, and a row for a database
 * connection.
 */
export async function withMemory(platform: TestPlatform, rows: readonly string[][]): Promise<string[][]> {
  const afterLoad = new Map<string, number>(
    SERVICE_NAMES.map((name) => [serviceOf(name).name, megabytesOf(platform, name)]),
  );
  const connection = (await connectionMegabytes(platform)).toFixed(1);
  return [
    ...rows.map(([name = '', ...cells]) => [name, ...cells, megabytesText(afterLoad.get(name) ?? null)]),
    ['a connection of PostgreSQL', ...PARTS.map(() => NOTHING), NOTHING, connection],
  ];
}

const SESSIONS = `SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`;

async function connectionMegabytes(platform: TestPlatform): Promise<number> {
  const sessions = await platform.query<{ pid: number }>('task', SESSIONS);
  const bytes = sessions.map(({ pid }) => privateBytes(pid));
  return bytes.reduce((sum, each) => sum + each, 0) / bytes.length / 1e6;
}

/** Private memory of a process, without shared buffers. 0 if the process has ended. */
function privateBytes(pid: number): number {
  const kibibytes = /^RssAnon:\s+(\d+) kB/m.exec(readProc(`${pid}/status`) ?? '')?.[1] ?? 0;
  return Number(kibibytes) * 1_024;
}

function megabytesOf(platform: TestPlatform, name: ServiceName): number {
  return (residentBytes(platform.programAt(platform.url(name)).pid) ?? 0) / 1e6;
}

function megabytesText(megabytes: number | null): string {
  return megabytes === null ? NOTHING : megabytes.toFixed(0);
}
