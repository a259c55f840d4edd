import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { FriendlyError } from '#platform/errors.ts';
import { PROJECT_ROOTS } from '#platform/programs.ts';
import { WORKSPACE } from '#platform/state-folder.ts';

const NPM_INSTALL = ['install', '--include=dev', '--no-audit', '--no-fund', '--prefer-offline'];
const NPM_TIMEOUT_MS = 90_000;

/**
 * Builds an earlier commit with its own tools, beside the present build, and gives the folder.
 * @throws {FriendlyError} without the commit
 */
export function buildRelease(commit: string, report: (line: string) => void): string {
  const folder = join(WORKSPACE, 'dist/releases', commit);
  if (!existsSync(join(folder, 'package-lock.json'))) unpack(commit, folder);
  report(`${commit}: its packages, as far as this checkout has others`);
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
 * Starts from the packages of this checkout, so that npm fetches only those that differ; without a registry
 * the release is built with those of this checkout. npm replaces whole files: what is linked stays.
 */
function installPackages(folder: string, report: (line: string) => void): void {
  if (!existsSync(join(folder, 'node_modules')))
    execFileSync('cp', ['-al', join(WORKSPACE, 'node_modules'), folder]);
  try {
    execFileSync('npm', NPM_INSTALL, { cwd: folder, timeout: NPM_TIMEOUT_MS, stdio: 'pipe' });
  } catch (error) {
    report(
      `npm cannot fetch the packages in which the release differs; built without them: ${String(error)}`,
    );
  }
}
