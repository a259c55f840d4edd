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
  /** Which of it and its dependencies are taken. */
  readonly isWanted: (name: string) => boolean;
  /** The release of Debian that they come from; null: the system's own sources. */
  readonly release: string | null;
}

/** True on a Debian-like system, whose packages can be unpacked in private. */
export function hasDebianPackages(): boolean {
  return ['apt-get', 'apt-cache', 'dpkg'].every((program) => findOnPath(program) !== null);
}

/**
 * Unpacks packages into the empty folder `root` and installs nothing: no root needed, nothing on the system
 * changes.
 * @param work an empty folder for what is downloaded
 * @throws {Error} with the package manager's own reason when they cannot be had
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
 * The system's own package lists may be missing (slim images) or name versions that are gone: lists of our
 * own, in `folder`.
 */
function privateApt(folder: string): string[] {
  const status = join(folder, 'status');
  writeFileSync(status, '');
  return asOptions({
    'Dir::State': join(folder, 'state'),
    'Dir::State::lists': join(folder, 'state/lists'),
    'Dir::State::status': status, // what is installed here does not matter
    'Dir::Cache': join(folder, 'cache'),
    'Dir::Cache::archives': join(folder, 'cache/archives'),
    'Dir::Cache::pkgcache': 'pkgcache.bin', // slim images keep none, and every step would read the lists again
    'Acquire::Languages': 'none',
    'Acquire::http::Timeout': '20',
    'APT::Sandbox::User': '', // the account _apt cannot write here
    'Debug::NoLocking': '1',
  });
}

/**
 * Another release at the mirrors that this Debian takes its own packages from.
 * @throws {Error} on another system
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
  if (sources.size === 0) throw new Error('this system takes no packages from a mirror of Debian');
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
  // One broken source of a third party fails the update, though the lists that matter came: it only explains
  // what follows.
  let whyNotUpdated: unknown = null;
  await apt('apt-get', [...options, '--error-on=any', 'update']).catch((error: unknown) => {
    whyNotUpdated = error;
  });
  const kinds = ['recommends', 'suggests', 'conflicts', 'breaks', 'replaces', 'enhances'];
  const without = kinds.map((kind) => `--no-${kind}`);
  const listed = await apt('apt-cache', [...options, 'depends', '--recurse', ...without, name]).catch(
    (error: unknown) => {
      throw whyNotUpdated ?? error;
    },
  );
  const names = new Set(listed.split('\n').filter(isWanted));
  await apt('apt-get', [...options, 'download', ...names], folder);
}

/** What a program of apt prints. @throws {Error} with its own reason, in one line */
async function apt(program: string, args: readonly string[], cwd = '/'): Promise<string> {
  try {
    return (await run(program, args, { cwd, timeout: APT_TIMEOUT_MS, maxBuffer: 2 ** 26 })).stdout;
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string };
    throw new Error(/^E: (.+)$/m.exec(stderr)?.[1] ?? message, { cause: error });
  }
}
