import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { FriendlyError, isErrorCode } from './errors.ts';
import { findOnPath } from './processes.ts';
import { runByOwnLoader, unpackOnce } from './unpacked-programs.ts';

/** A RabbitMQ on this machine from which a private node can be started. */
export interface RabbitmqInstallation {
  /** Version and source, in words for the user. */
  readonly origin: string;
  /** Null if unknown, because only the server's script knows it. */
  readonly version: string | null;
  /** RABBITMQ_HOME; null if the server's script determines it. */
  readonly home: string | null;
  readonly server: string;
  readonly epmd: string;
  /** Folders to put before PATH. */
  readonly binFolders: readonly string[];
}

/** Debian release of each major version. */
const RELEASES: Readonly<Record<string, string>> = { '3': 'bookworm', '4': 'trixie' };
const PREFERRED = '4';

/** Returns the major version that PLATFORM_RABBITMQ requires; null if it requires none. */
function requiredMajor(): string | null {
  const { PLATFORM_RABBITMQ: required } = process.env;
  if (!required) return null;
  if (!Object.hasOwn(RELEASES, required))
    throw new FriendlyError(`PLATFORM_RABBITMQ=${required}: use 3 or 4`);
  return required;
}

/**
 * Returns the RabbitMQ to run, installed or from Debian's packages: the version that PLATFORM_RABBITMQ
 * requires, otherwise 4, otherwise the one of this system.
 * @throws {Error} with the reason if there is none
 */
export async function provideRabbitmq(
  cacheFolder: string,
  installed = findInstalledRabbitmq(),
): Promise<RabbitmqInstallation> {
  const required = requiredMajor();
  const major = required ?? PREFERRED;
  const isRight = ({ version }: RabbitmqInstallation): boolean =>
    version === null || version.startsWith(`${major}.`);
  if (installed !== null && isRight(installed)) return installed;
  try {
    return await unpackRabbitmq(cacheFolder, RELEASES[major] ?? null);
  } catch (error) {
    if (required !== null) throw error;
    const other = installed ?? (await unpackRabbitmq(cacheFolder, null));
    const reason = `RabbitMQ ${major} is not available (${(error as Error).message})`;
    if (!isRight(other)) console.warn(`${reason}: using ${other.origin}`);
    return other;
  }
}

/** Returns the RabbitMQ that is installed on the system, or null. */
function findInstalledRabbitmq(): RabbitmqInstallation | null {
  const epmd = findOnPath('epmd') ?? findEpmdOfErlang('/usr/lib/erlang');
  if (epmd === null) return null;
  // Debian's /usr/sbin/rabbitmq-server insists on root or the user rabbitmq, so the script behind it is used.
  const home = findRabbitmqHome('/usr/lib/rabbitmq/lib');
  const server = home === null ? findOnPath('rabbitmq-server') : join(home, 'sbin/rabbitmq-server');
  if (server === null) return null;
  const version = home === null ? null : versionOf(home);
  const origin = `RabbitMQ ${version ?? 'of unknown version'}, installed on this machine`;
  return { origin, version, home, server, epmd, binFolders: [] };
}

const HOME_PREFIX = 'rabbitmq_server-';

/** Returns the `rabbitmq_server-*` folder under `parent`, or null. */
function findRabbitmqHome(parent: string): string | null {
  const name = listFolder(parent).find((entry) => entry.startsWith(HOME_PREFIX));
  return name === undefined ? null : join(parent, name);
}

function versionOf(home: string): string {
  return basename(home).slice(HOME_PREFIX.length);
}

function findEpmdOfErlang(root: string): string | null {
  const runtime = listFolder(root).find((entry) => entry.startsWith('erts-'));
  const epmd = runtime === undefined ? null : join(root, runtime, 'bin/epmd');
  return epmd !== null && existsSync(epmd) ? epmd : null;
}

function listFolder(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (error) {
    if (isErrorCode(error, 'ENOENT', 'EACCES')) return [];
    throw error;
  }
}

/**
 * Unpacks Debian's rabbitmq-server and Erlang under `cacheFolder`, with the libraries that they were built
 * for. Downloads about 45 MB the first time.
 * @param release of Debian; null for the system's own sources
 */
async function unpackRabbitmq(cacheFolder: string, release: string | null): Promise<RabbitmqInstallation> {
  const root = join(cacheFolder, `rabbitmq-${release ?? 'system'}`);
  await unpackOnce(root, { name: 'rabbitmq-server', isWanted, release }, makeRelocatable);
  return describe(root);
}

/** Libraries that Erlang loads in either release. */
const LIBRARIES =
  /^(zlib1g|lib(c6|gcc-s1|stdc\+\+6|sctp1|ssl3|ncursesw?6|tinfo6|systemd0|zstd1|cap2|lzma5|lz4-1)(t64)?)$/;

/**
 * Whether a recursive dependency of rabbitmq-server is needed. The server, Erlang and its libraries are; the
 * rest (init scripts, logrotate) is not.
 */
export function isWanted(name: string): boolean {
  if (/^erlang-.*(?:doc|dev|src|hipe)$/.test(name)) return false;
  return /^(rabbitmq-server|erlang-[\w-]+)$/.test(name) || LIBRARIES.test(name);
}

function describe(root: string): RabbitmqInstallation {
  const erlang = join(root, 'usr/lib/erlang');
  const home = findRabbitmqHome(join(root, 'usr/lib/rabbitmq/lib'));
  const epmd = findEpmdOfErlang(erlang);
  if (home === null || epmd === null)
    throw new Error(`${root} holds no complete RabbitMQ: remove it and start again`);
  const version = versionOf(home);
  return {
    origin: `Debian's packages of RabbitMQ ${version}, unpacked for this checkout`,
    version,
    home,
    server: join(home, 'sbin/rabbitmq-server'),
    epmd,
    binFolders: [join(erlang, 'bin')],
  };
}

/**
 * Makes the unpacked Erlang run from any folder, with its own libraries.
 * @param root folder that the packages were unpacked into
 */
export function makeRelocatable(root: string): void {
  const erlang = join(root, 'usr/lib/erlang');
  const script = join(erlang, 'bin/erl');
  writeFileSync(script, relocateErlang(readFileSync(script, 'utf8')));
  runByOwnLoader(root, erlang);
}

/** Makes Debian's Erlang start script derive its root from its own location. */
function relocateErlang(script: string): string {
  return script.replaceAll(/^(\s*ROOTDIR=)\/.*$/gm, '$1$(dirname "$(dirname "$(readlink -f "$0")")")');
}
