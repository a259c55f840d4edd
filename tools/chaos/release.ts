import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { FriendlyError } from '#platform/errors.ts';
import { PROJECT_ROOTS } from '#platform/programs.ts';
import { WORKSPACE } from '#platform/state-folder.ts';

/** A package that does not come is asked for again after half a minute instead of five. */
const NPM_FLAGS = ['--no-audit', '--no-fund', '--prefer-offline', '--fetch-timeout=30000'];

interface Lock {
  readonly packages: Readonly<Record<string, { readonly integrity?: string; readonly version?: string }>>;
}

/** Builds an earlier commit with its own tools, beside the present build, and gives the folder. @throws {FriendlyError} without the commit */
export function buildRelease(commit: string, report: (line: string) => void): string {
  const folder = join(WORKSPACE, 'dist/releases', commit);
  if (!existsSync(join(folder, 'package-lock.json'))) unpack(commit, folder);
  if (!existsSync(join(folder, 'node_modules'))) {
    // Packages of the release that are here are not fetched again.
    const isHere = holdsPackagesOf(folder);
    report(`${commit}: ${isHere ? 'its packages are those of this checkout' : 'npm ci'}`);
    if (isHere) symlinkSync(join(WORKSPACE, 'node_modules'), join(folder, 'node_modules'));
    else execFileSync('npm', ['ci', '--include=dev', ...NPM_FLAGS], { cwd: folder });
  }
  report(`building ${commit}`);
  execFileSync(process.execPath, ['tools/build/bundle.ts', ...PROJECT_ROOTS], { cwd: folder });
  return join(folder, 'dist');
}

function unpack(commit: string, folder: string): void {
  try {
    const archive = execFileSync('git', ['archive', commit], { cwd: WORKSPACE, maxBuffer: 2 ** 28 });
    mkdirSync(folder, { recursive: true });
    execFileSync('tar', ['-x', '-C', folder], { input: archive });
  } catch (cause) {
    throw new FriendlyError(`This checkout has no commit ${commit}: git fetch --unshallow gets it.`, {
      cause,
    });
  }
}

/** True when this checkout has each package that the release's lock file names, in the same version. */
function holdsPackagesOf(folder: string): boolean {
  const [present, release] = [WORKSPACE, folder].map((root) => {
    const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as Lock;
    return lock.packages;
  });
  return Object.entries(release ?? {}).every(
    ([path, { version, integrity }]) =>
      path === '' || (present?.[path]?.version === version && present?.[path]?.integrity === integrity),
  );
}
