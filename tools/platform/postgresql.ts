import { spawn } from 'node:child_process';
import { chownSync, existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { FriendlyError } from './friendly-error.ts';
import { isErrorCode } from './process-identity.ts';
import { makeOwnedFolder, type RunAs } from './run-as.ts';
import type { SupervisedProcess, Supervisor } from './supervisor.ts';
import { waitUntilReady } from './wait-until.ts';

export interface PostgresqlOptions {
  /** Folder with `bin`, `lib`, `share`. */
  readonly binaries: string;
  readonly folder: string;
  readonly port: number;
  readonly password: string;
  readonly runAs: RunAs | null;
  /** false: nothing is flushed to the disk (a test run's server is thrown away). */
  readonly durable: boolean;
}

const STAGE = 0;
const START_TIMEOUT_MS = 60_000;

/**
 * Starts a private PostgreSQL on 127.0.0.1, its data made on the first start.
 * @returns the URL of its superuser.
 */
export async function startPostgresql(supervisor: Supervisor, options: PostgresqlOptions): Promise<string> {
  makeOwnedFolder(options.folder, options.runAs);
  const data = join(options.folder, 'data');
  if (!existsSync(data)) await initialise(data, options);
  removeStaleLock(data);
  const server = await supervisor.spawn({
    name: 'postgresql',
    stage: STAGE,
    command: join(options.binaries, 'bin/postgres'),
    args: ['-D', data, '-p', String(options.port), ...serverSettings(options.durable)],
    env: serverEnvironment(),
    cwd: options.folder,
    runAs: options.runAs,
    signal: 'SIGINT', // "fast shutdown": ends sessions, writes a checkpoint
    graceMs: 15_000,
  });
  const url = superuserUrl(options.port, options.password);
  await waitUntilReady(server, () => acceptsConnections(url, server), START_TIMEOUT_MS);
  return url;
}

/** The address of a private server's superuser. */
export function superuserUrl(port: number, password: string): string {
  return `postgres://postgres:${password}@127.0.0.1:${port}/postgres`;
}

function serverSettings(durable: boolean): string[] {
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'max_connections=300',
    'shared_buffers=128MB',
    'timezone=UTC',
    'log_timezone=UTC',
    ...(durable ? [] : ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off']),
  ];
  return settings.flatMap((setting) => ['-c', setting]);
}

function serverEnvironment(): NodeJS.ProcessEnv {
  // Not ours: PG* variables and a language of the user must not change the server.
  return { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' };
}

async function initialise(data: string, options: PostgresqlOptions): Promise<void> {
  // Under another name until it is complete: a first start that is killed leaves nothing half made.
  const partial = `${data}.partial`;
  const passwordFile = join(options.folder, 'initial-password');
  rmSync(partial, { recursive: true, force: true });
  rmSync(passwordFile, { force: true });
  writeFileSync(passwordFile, options.password, { mode: 0o600 });
  if (options.runAs) chownSync(passwordFile, options.runAs.uid, options.runAs.gid);
  await run(join(options.binaries, 'bin/initdb'), initArguments(partial, passwordFile), options);
  rmSync(passwordFile);
  renameSync(partial, data);
}

function initArguments(data: string, passwordFile: string): string[] {
  return [
    ...['-D', data, '-U', 'postgres', `--pwfile=${passwordFile}`, '--auth=scram-sha-256', '--no-sync'],
    // Independent of the system's languages, or none being installed would give SQL_ASCII.
    ...['--encoding=UTF8', '--locale-provider=builtin', '--builtin-locale=C.UTF-8', '--locale=C'],
  ];
}

function run(command: string, args: string[], options: PostgresqlOptions): Promise<void> {
  const identity = options.runAs ? { uid: options.runAs.uid, gid: options.runAs.gid } : {};
  const child = spawn(command, args, {
    cwd: options.folder,
    env: serverEnvironment(),
    stdio: ['ignore', 'pipe', 'pipe'],
    ...identity,
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => (output += text));
  }
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) =>
      code === 0
        ? resolve()
        : reject(new FriendlyError(`initdb failed (exit code ${code}):\n${output.trim()}`)),
    );
  });
}

/**
 * PostgreSQL takes the process number in a crashed server's lock file for alive when any process has that number now.
 * The run record has told us that ours is gone; only a server that really works on this folder keeps its lock.
 */
function removeStaleLock(data: string): void {
  const lock = join(data, 'postmaster.pid');
  if (!existsSync(lock)) return;
  const pid = readFileSync(lock, 'utf8').split('\n')[0] ?? '';
  if (process.platform === 'linux' && !commandLineOf(pid).includes(data)) rmSync(lock, { force: true });
}

function commandLineOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch (error) {
    if (isErrorCode(error, 'ENOENT', 'ESRCH')) return '';
    throw error;
  }
}

async function acceptsConnections(url: string, server: SupervisedProcess): Promise<boolean> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  // A connection that breaks after it stood emits an error of its own; the next probe sees the state anyway.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return true;
  } catch (error) {
    if (isErrorCode(error, 'ECONNREFUSED', 'ECONNRESET', '57P03')) return false;
    if (server.hasEnded()) return false;
    throw new FriendlyError(
      `PostgreSQL does not let us in: ${error instanceof Error ? error.message : String(error)}`,
      { cause: error },
    );
  } finally {
    await client.end();
  }
}
