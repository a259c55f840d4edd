import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findOnPath } from './processes.ts';

const run = promisify(execFile);
const APT_TIMEOUT_MS = 180_000;
const DEBIAN_KEYS = '/usr/share/keyrings/debian-archive-keyring.gpg';

/** A package and what it depends on. */
export interface PackageSet {
  readonly name: string;
  /** Whether the package, or one of its dependencies, is unpacked. */
  readonly isWanted: (name: string) => boolean;
  /** Release of Debian that they come from; null for the system's own sources. */
  readonly release: string | null;
}

/** Whether this is a Debian-like system, whose packages can be unpacked without installing them. */
export function hasDebianPackages(): boolean {
  return ['apt-get', 'apt-cache', 'dpkg'].every((program) => findOnPath(program) !== null);
}

/**
 * Unpacks packages into the empty folder `root` without installing them: this needs no root rights and
 * changes nothing on the system.
 * @param work an empty folder for the downloads
 * @throws {Error} with the package manager's own reason if they cannot be downloaded
 */
export async function unpackPackages(packages: PackageSet, work: string, root: string): Promise<void> {
  const own = join(work, 'apt');
  for (const folder of ['state/lists/partial', 'cache/archives/partial'])
    mkdirSync(join(own, folder), { recursive: true, mode: 0o755 });
  const options = privateApt(own);
  if (packages.release !== null) options.push(...(await sourcesOf(packages.release, own)));
  await download(packages, work, options);
  for (const file of readdirSync(work).filter((name) => name.endsWith('.deb')))
    await run('dpkg', ['-x', join(work, file), root]);
}

/**
 * Returns options that make apt keep package lists of its own in `folder`: those of the system may be missing
 * (slim images) or name versions that no longer exist.
 */
function privateApt(folder: string): string[] {
  const status = join(folder, 'status');
  writeFileSync(status, '');
  return asOptions({
    'Dir::State': join(folder, 'state'),
    'Dir::State::lists': join(folder, 'state/lists'),
    'Dir::State::status': status, // empty: no package counts as installed
    'Dir::Cache': join(folder, 'cache'),
    'Dir::Cache::archives': join(folder, 'cache/archives'),
    'Dir::Cache::pkgcache': 'pkgcache.bin', // slim images disable it, and every step would parse the lists again
    'Acquire::Languages': 'none',
    'Acquire::http::Timeout': '20',
    'APT::Sandbox::User': '', // the account _apt cannot write here
    'Debug::NoLocking': '1',
  });
}

/**
 * Returns options for another release, from the mirrors that this Debian uses for its own packages.
 * @throws {Error} on a system that uses no Debian mirror
 */
async function sourcesOf(release: string, folder: string): Promise<string[]> {
  const own = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync('/etc/os-release', 'utf8'))?.[1];
  const format = '$(RELEASE) $(COMPONENT) $(REPO_URI)';
  const listed = await apt('apt-get', ['indextargets', '--format', format, 'Created-By: Packages']);
  const targets = listed.split('\n').map((line) => line.split(' '));
  const mirrors = targets.filter(([name, component]) => name === own && component === 'main');
  const sources = new Set(
    mirrors.map(([, , uri]) => `deb [signed-by=${DEBIAN_KEYS}] ${uri} ${release} main\n`),
  );
  if (sources.size === 0) throw new Error('this system uses no Debian mirror');
  const list = join(folder, 'sources.list');
  writeFileSync(list, [...sources].join(''));
  const nothing = '/dev/null';
  return asOptions({
    'Dir::Etc::SourceList': list,
    'Dir::Etc::SourceParts': nothing,
    'Dir::Etc::Preferences': nothing,
    'Dir::Etc::PreferencesParts': nothing,
    'APT::Default-Release': '',
  });
}

function asOptions(settings: Readonly<Record<string, string>>): string[] {
  return Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
}

async function download({ name, isWanted }: PackageSet, folder: string, options: string[]): Promise<void> {
  // A broken source of a third party fails the update, although the needed lists may have arrived: its error
  // is thrown only if the next step fails.
  let updateError: unknown = null;
  await apt('apt-get', [...options, '--error-on=any', 'update']).catch((error: unknown) => {
    updateError = error;
  });
  const kinds = ['recommends', 'suggests', 'conflicts', 'breaks', 'replaces', 'enhances'];
  const without = kinds.map((kind) => `--no-${kind}`);
  const listed = await apt('apt-cache', [...options, 'depends', '--recurse', ...without, name]).catch(
    (error: unknown) => {
      throw updateError ?? error;
    },
  );
  const names = new Set(listed.split('\n').filter(isWanted));
  await apt('apt-get', [...options, 'download', ...names], folder);
}

/** Runs a program of apt and returns its output. @throws {Error} with apt's own reason, in one line */
async function apt(program: string, args: readonly string[], cwd = '/'): Promise<string> {
  try {
    return (await run(program, args, { cwd, timeout: APT_TIMEOUT_MS, maxBuffer: 2 ** 26 })).stdout;
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string };
    throw new Error(/^E: (.+)$/m.exec(stderr)?.[1] ?? message, { cause: error });
  }
}
