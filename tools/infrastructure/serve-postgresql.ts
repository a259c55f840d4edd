/**
 * A private PostgreSQL that keeps what it acknowledged, for tests that crash it; thrown away at the end. Prints one line of JSON,
 * `{"url": …}`, when it is ready, and again after each line it reads: `crash` ends every process of the server with SIGKILL,
 * `start` starts it again on the same data and port. Stops when its standard input closes or a signal comes.
 *
 * Usage: node tools/infrastructure/serve-postgresql.ts
 */
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { findFreePorts } from './free-ports.ts';
import { FriendlyError } from './friendly-error.ts';
import { findPostgresqlBinaries } from './postgresql-binaries.ts';
import { startPostgresql, type PostgresqlOptions } from './postgresql.ts';
import { findProcessStart, isErrorCode } from './process-identity.ts';
import { findRunAs } from './run-as.ts';
import { SecretFile } from './secrets.ts';
import { openStateFolder } from './state-folder.ts';
import { Supervisor } from './supervisor.ts';
import { makeTemporaryFolder } from './test-infrastructure.ts';

const WORKSPACE = join(import.meta.dirname, '../..');
const CRASH_TIMEOUT_MS = 10_000;

async function main(): Promise<void> {
  const runAs = findRunAs();
  const folder = makeTemporaryFolder(runAs);
  const supervisor = await Supervisor.open({
    recordFile: join(folder, 'run.json'),
    logFolder: join(folder, 'logs'),
    removeFolder: folder,
  });
  const stop = (exitCode: number): void => void supervisor.stop().then(() => process.exit(exitCode));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop(0));
  const [port] = (await findFreePorts(1)) as [number];
  const options: PostgresqlOptions = {
    binaries: findPostgresqlBinaries(WORKSPACE, join(openStateFolder(WORKSPACE), 'cache'), runAs),
    folder: join(folder, 'postgresql'),
    port,
    password: new SecretFile(join(folder, 'postgresql.secret')).get('password'),
    runAs,
    durable: true,
  };
  try {
    await serve(supervisor, options);
    stop(0);
  } catch (error) {
    process.stderr.write(`${error instanceof FriendlyError ? error.message : String(error)}\n`);
    stop(1);
  }
}

async function serve(supervisor: Supervisor, options: PostgresqlOptions): Promise<void> {
  const url = await startPostgresql(supervisor, options);
  const answer = (): boolean => process.stdout.write(`${JSON.stringify({ url })}\n`);
  answer();
  for await (const command of createInterface({ input: process.stdin })) {
    if (command === 'crash') await crash(url);
    else if (command === 'start') await startPostgresql(supervisor, options);
    else throw new FriendlyError(`unknown command: ${command}`);
    answer();
  }
}

/** The parent first, so that it starts no more; then all its children, or they would write on beside the next server. */
async function crash(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => undefined);
  await client.connect();
  const parent = await client.query<{ lock: string }>(`SELECT pg_read_file('postmaster.pid') AS lock`);
  const children = await client.query<{ pid: number }>('SELECT pid FROM pg_stat_activity');
  const pids = [Number.parseInt(parent.rows[0]?.lock ?? '', 10), ...children.rows.map(({ pid }) => pid)];
  for (const pid of pids) kill(pid);
  const deadline = performance.now() + CRASH_TIMEOUT_MS;
  while (pids.some((pid) => findProcessStart(pid) !== null)) {
    if (performance.now() > deadline) throw new FriendlyError('PostgreSQL survived SIGKILL.');
    await delay(20);
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    // It ended by itself in the meantime.
    if (!isErrorCode(error, 'ESRCH')) throw error;
  }
}

await main();
