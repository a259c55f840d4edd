import { execFile } from 'node:child_process';
import {
  accessSync,
  chmodSync,
  constants,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { isErrorCode } from './errors.ts';

const run = promisify(execFile);
const APT_TIMEOUT_MS = 180_000;

/** A RabbitMQ on this machine that a private node can be started from. */
export interface RabbitmqInstallation {
  /** Said to the user: where it comes from. */
  readonly origin: string;
  /** RABBITMQ_HOME, or null when the server's script knows it. */
  readonly home: string | null;
  readonly server: string;
  readonly epmd: string;
  /** Folders to put before PATH, and for the dynamic linker. */
  readonly binFolders: readonly string[];
  readonly libraryFolders: readonly string[];
}

/** The RabbitMQ that the system has installed, or null. */
export function findInstalledRabbitmq(): RabbitmqInstallation | null {
  const epmd = findOnPath('epmd') ?? findEpmdOfErlang('/usr/lib/erlang');
  if (epmd === null) return null;
  // Debian's /usr/sbin/rabbitmq-server insists on root or the user rabbitmq: take the script behind it.
  const home = findRabbitmqHome('/usr/lib/rabbitmq/lib');
  const server = home === null ? findOnPath('rabbitmq-server') : join(home, 'sbin/rabbitmq-server');
  if (server === null) return null;
  return { origin: 'installed on this machine', home, server, epmd, binFolders: [], libraryFolders: [] };
}

/** The `rabbitmq_server-*` folder under `parent`, or null. */
function findRabbitmqHome(parent: string): string | null {
  const name = listFolder(parent).find((entry) => entry.startsWith('rabbitmq_server-'));
  return name === undefined ? null : join(parent, name);
}

/** `epmd` of an Erlang under `root`, or null. */
function findEpmdOfErlang(root: string): string | null {
  const runtime = listFolder(root).find((entry) => entry.startsWith('erts-'));
  const epmd = runtime === undefined ? null : join(root, runtime, 'bin/epmd');
  return epmd !== null && existsSync(epmd) ? epmd : null;
}

/** The full path of a program on PATH, or null. */
export function findOnPath(program: string): string | null {
  const candidates = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, program));
  return candidates.find(isExecutable) ?? null;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch (error) {
    if (isErrorCode(error, 'ENOENT', 'EACCES', 'ENOTDIR')) return false;
    throw error;
  }
}

function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isErrorCode(error, 'ENOENT', 'EACCES')) return [];
    throw error;
  }
}

/** True on a Debian-like system, whose packages can be unpacked in private. */
export function hasDebianPackages(): boolean {
  return ['apt-get', 'apt-cache', 'dpkg'].every((program) => findOnPath(program) !== null);
}

/**
 * Debian's rabbitmq-server and Erlang, unpacked under `cacheFolder` without installing anything: no root needed, nothing on
 * the system changes. Downloads about 35 MB the first time.
 */
export async function unpackRabbitmq(cacheFolder: string): Promise<RabbitmqInstallation> {
  const root = join(cacheFolder, 'rabbitmq');
  if (!existsSync(root)) {
    // A folder of its own: another program of this checkout may be unpacking at the same moment. The first to finish wins.
    mkdirSync(cacheFolder, { recursive: true });
    const partial = mkdtempSync(`${root}.partial-`);
    try {
      chmodSync(partial, 0o755);
      const [packages, unpacked] = [join(partial, 'packages'), join(partial, 'unpacked')];
      for (const folder of [packages, unpacked]) mkdirSync(folder, { mode: 0o755 });
      await download(packages, join(partial, 'apt'));
      await unpack(packages, unpacked);
      relocate(unpacked, root);
      moveInto(unpacked, root);
    } finally {
      rmSync(partial, { recursive: true, force: true });
    }
  }
  relocate(root, root);
  return describe(root);
}

function describe(root: string): RabbitmqInstallation {
  const erlang = join(root, 'usr/lib/erlang');
  const home = findRabbitmqHome(join(root, 'usr/lib/rabbitmq/lib'));
  const epmd = findEpmdOfErlang(erlang);
  if (home === null || epmd === null)
    throw new Error(`${root} holds no complete RabbitMQ: remove it and start again`);
  const libraries = join(root, 'usr/lib');
  return {
    origin: "Debian's packages, unpacked in private",
    home,
    server: join(home, 'sbin/rabbitmq-server'),
    epmd,
    binFolders: [join(erlang, 'bin')],
    libraryFolders: readdirSync(libraries)
      .filter((name) => name.endsWith('-linux-gnu') || name.includes('-linux-gnu'))
      .map((name) => join(libraries, name)),
  };
}

async function unpack(packages: string, root: string): Promise<void> {
  for (const file of readdirSync(packages).filter((name) => name.endsWith('.deb'))) {
    await run('dpkg', ['-x', join(packages, file), root]);
  }
}

/** Moves a complete folder to where it belongs, unless one is there already. */
function moveInto(folder: string, target: string): void {
  try {
    renameSync(folder, target);
  } catch (error) {
    if (!isErrorCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
  }
}

/** Erlang's scripts hold absolute paths: makes those in `folder` point to `root`. A checkout may be moved, or its cache copied to another. */
function relocate(folder: string, root: string): void {
  const marker = join(folder, 'unpacked-for');
  if (existsSync(marker) && readFileSync(marker, 'utf8') === root) return;
  for (const script of ['erl', 'start']) {
    const path = join(folder, 'usr/lib/erlang/bin', script);
    writeFileSync(path, relocateErlang(readFileSync(path, 'utf8'), join(root, 'usr/lib/erlang')));
  }
  writeFileSync(marker, root);
}

/** Points one of Debian's Erlang start scripts at another root, wherever it pointed before. */
export function relocateErlang(script: string, erlangRoot: string): string {
  const quoted = `'${erlangRoot.replaceAll("'", `'\\''`)}'`;
  return script.replace(/^(\s*ROOTDIR=)["']?\/.*$/gm, (_line, assignment: string) => assignment + quoted);
}

async function download(folder: string, aptFolder: string): Promise<void> {
  // The system's package lists first; they may be missing (slim images) or name versions that are gone from the mirror.
  const attempts: [string[], boolean][] = [
    [['-o', 'Debug::NoLocking=1'], false],
    [privateApt(aptFolder), true],
  ];
  for (const [options, isPrivate] of attempts) {
    try {
      if (isPrivate) await updateLists(aptFolder, options);
      const names = await listPackages(options);
      if (names.includes('rabbitmq-server')) {
        await run('apt-get', [...options, '--quiet', 'download', ...names], {
          cwd: folder,
          timeout: APT_TIMEOUT_MS,
        });
        return;
      }
      if (isPrivate) throw new Error("apt's sources have no package rabbitmq-server");
    } catch (error) {
      if (isPrivate) throw error;
    }
  }
}

async function updateLists(aptFolder: string, options: string[]): Promise<void> {
  for (const name of ['state/lists/partial', 'cache/archives/partial']) {
    mkdirSync(join(aptFolder, name), { recursive: true, mode: 0o755 });
  }
  try {
    await run('apt-get', [...options, '--quiet', 'update'], { timeout: APT_TIMEOUT_MS });
  } catch (error) {
    // One broken third-party source fails the whole update, though Debian's own lists came; without them the next step fails.
    if (!existsSync(join(aptFolder, 'state/lists'))) throw error;
  }
}

function privateApt(aptFolder: string): string[] {
  const settings = [
    `Dir::State=${join(aptFolder, 'state')}`,
    `Dir::Cache=${join(aptFolder, 'cache')}`,
    `Dir::Cache::archives=${join(aptFolder, 'cache/archives')}`,
    `Dir::State::lists=${join(aptFolder, 'state/lists')}`,
    'Dir::State::status=/var/lib/dpkg/status',
    'APT::Sandbox::User=', // the account _apt cannot write here
    'Debug::NoLocking=1',
  ];
  return settings.flatMap((setting) => ['-o', setting]);
}

async function listPackages(options: string[]): Promise<string[]> {
  const kinds = ['recommends', 'suggests', 'conflicts', 'breaks', 'replaces', 'enhances'];
  const { stdout } = await run('apt-cache', [
    ...options,
    'depends',
    '--recurse',
    ...kinds.map((kind) => `--no-${kind}`),
    'rabbitmq-server',
  ]);
  return selectPackages(stdout);
}

/**
 * Of the recursive dependencies of rabbitmq-server as `apt-cache depends` lists them: the server, Erlang, and the libraries
 * that a bare system may lack. The rest (libc, init scripts, logrotate) is there or not needed.
 */
export function selectPackages(apt: string): string[] {
  const wanted = /^(rabbitmq-server|erlang-[\w-]+|lib(?:sctp1|ssl3|ncurses6|tinfo6|stdc\+\+6)(?:t64)?)$/;
  const unwanted = /^erlang-.*(?:doc|dev|src|hipe)$/;
  return [...new Set(apt.split('\n').filter((line) => wanted.test(line) && !unwanted.test(line)))];
}
