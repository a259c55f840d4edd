import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { findOnPath } from './processes.ts';
import { runByOwnLoader, unpackOnce } from './unpacked-programs.ts';

/** A PgBouncer on this machine. */
export interface PgbouncerInstallation {
  readonly program: string;
  readonly version: string;
}

/** First version with prepared statements in transaction mode; Debian 12 has an older one. */
const OLDEST = [1, 21] as const;
const RELEASE = 'trixie';
const PROGRAM = 'usr/sbin/pgbouncer';

/** Packages of the program and of the libraries that it loads. */
const WANTED =
  /^(pgbouncer|zlib1g|lib(c6|gcc-s1|cares2|event-2\.1-7t64|pam0g|audit1|cap-ng0|ssl3t64|zstd1|systemd0|cap2))$/;

/**
 * Returns the PgBouncer of the system, or the one that `unpackPgbouncer` put into `cacheFolder`; null if
 * there is none that is new enough.
 */
export function findPgbouncer(cacheFolder: string): PgbouncerInstallation | null {
  const installed = [findOnPath('pgbouncer'), `/${PROGRAM}`, join(rootIn(cacheFolder), PROGRAM)];
  for (const program of installed) {
    if (program === null || !existsSync(program)) continue;
    const version = versionOf(program);
    if (version !== null && isNewEnough(version)) return { program, version };
  }
  return null;
}

/**
 * Unpacks Debian's package and its libraries into `cacheFolder`.
 * @throws {Error} with the reason if they cannot be downloaded or do not run
 */
export async function unpackPgbouncer(cacheFolder: string): Promise<void> {
  const isWanted = (name: string): boolean => WANTED.test(name);
  const packages = { name: 'pgbouncer', release: RELEASE, isWanted };
  await unpackOnce(rootIn(cacheFolder), packages, (unpacked) => {
    runByOwnLoader(unpacked, join(unpacked, PROGRAM));
  });
}

function rootIn(cacheFolder: string): string {
  return join(cacheFolder, `pgbouncer-${RELEASE}`);
}

/** Returns null if the program does not run. */
function versionOf(program: string): string | null {
  try {
    return (
      /PgBouncer (\d+\.\d+\.\d+)/.exec(execFileSync(program, ['--version'], { encoding: 'utf8' }))?.[1] ??
      null
    );
  } catch (error) {
    if (error instanceof Error) return null;
    throw error;
  }
}

function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}
