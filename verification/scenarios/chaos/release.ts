import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { FriendlyError } from '#platform/errors.ts';
import { PROJECT_ROOTS } from '#platform/programs.ts';
import { WORKSPACE } from '#platform/state-folder.ts';

const NPM_INSTALL = ['install', '--include=dev', '--no-audit', '--no-fund', '--prefer-offline'];
const NPM_TIMEOUT_MS = 90_000;

/**
 * Builds an earlier commit with its own tools, in dist/releases, and returns the folder of the build.
 * @throws {FriendlyError} if the checkout does not have the commit
 */
export function buildRelease(commit: string, report: (line: string) => void): string {
  const folder = join(WORKSPACE, 'dist/releases', commit);
  if (!existsSync(join(folder, 'package-lock.json'))) unpack(commit, folder);
  report(`installing the packages in which ${commit} differs from this checkout`);
  installPackages(folder, report);
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

/**
 * Installs the release's packages. Starts from hard links to those of this checkout, so that npm fetches only
 * those that differ. npm replaces whole files, so the originals do not change. Without a registry the release
 * is built with the packages of this checkout.
 */
function installPackages(folder: string, report: (line: string) => void): void {
  if (!existsSync(join(folder, 'node_modules')))
    execFileSync('cp', ['-al', join(WORKSPACE, 'node_modules'), folder]);
  try {
    execFileSync('npm', NPM_INSTALL, { cwd: folder, timeout: NPM_TIMEOUT_MS, stdio: 'pipe' });
  } catch (error) {
    report(
      `npm cannot fetch the packages in which the release differs; it is built with those of this checkout: ${String(error)}`,
    );
  }
}
