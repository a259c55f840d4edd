import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join, relative } from 'node:path';
import { hasDebianPackages, type PackageSet, unpackPackages } from './debian-packages.ts';
import { isErrorCode } from './errors.ts';

/**
 * Unpacks packages into the folder `root` unless it exists. Installs nothing.
 * @param finish prepares the unpacked packages for use
 * @throws {Error} with the reason if they cannot be downloaded
 */
export async function unpackOnce(
  root: string,
  packages: PackageSet,
  finish: (unpacked: string) => void,
): Promise<void> {
  if (existsSync(root)) return;
  if (!hasDebianPackages()) throw new Error('this is not a Debian-like system');
  // Unpacked in a temporary folder: another program of this checkout may be unpacking concurrently. The first
  // to finish wins.
  mkdirSync(dirname(root), { recursive: true });
  const partial = mkdtempSync(`${root}.partial-`);
  try {
    chmodSync(partial, 0o755);
    const [downloads, unpacked] = [join(partial, 'packages'), join(partial, 'unpacked')];
    for (const folder of [downloads, unpacked]) mkdirSync(folder, { mode: 0o755 });
    await unpackPackages(packages, downloads, unpacked);
    finish(unpacked);
    moveInto(unpacked, root);
  } finally {
    rmSync(partial, { recursive: true, force: true });
  }
}

/**
 * Makes the programs under `folder` run from any place (a checkout may be moved, or its cache copied) and
 * with their own libraries, which may be newer than the system's. A script in the place of each program
 * starts it with the packages' own loader. The loader gets the library path as an argument. An environment
 * variable would also reach the system programs that the program starts, and these fail with the packages'
 * libraries.
 * @param root folder that the packages were unpacked into
 */
export function runByOwnLoader(root: string, folder: string): void {
  const files = readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
  const loader = files.find((file) => basename(file).startsWith('ld-linux-'));
  if (loader === undefined) throw new Error('the packages contain no program loader (ld-linux)');
  const libraries = ['lib', 'usr/lib'].map((parent) => join(root, parent, basename(dirname(loader))));
  for (const program of files.filter((file) => file.startsWith(folder) && isProgram(file))) {
    const real = `${program}.real`;
    renameSync(program, real);
    const inRoot = (path: string): string => `"$root/${relative(root, path)}"`;
    const script = `#!/bin/sh
root=$(dirname "$(readlink -f "$0")")/${relative(dirname(program), root)}
exec ${inRoot(loader)} --library-path ${libraries.map(inRoot).join(':')} --argv0 "$0" ${inRoot(real)} "$@"
`;
    writeFileSync(program, script, { mode: 0o755 });
  }
}

/** Moves a complete folder to its final place, unless that exists. */
function moveInto(folder: string, target: string): void {
  try {
    renameSync(folder, target);
  } catch (error) {
    if (!isErrorCode(error, 'ENOTEMPTY', 'EEXIST')) throw error;
  }
}

function isProgram(file: string): boolean {
  return (statSync(file).mode & 0o111) !== 0 && readFileSync(file).subarray(1, 4).toString() === 'ELF';
}
