/**
 * Deletes the files in a program's `node_modules` that a running service never reads; keeps licences. If the
 * program's packages are bundled, also deletes all packages except those that cannot be bundled, and adds the
 * kept ones to the program's bill of materials.
 *
 * Usage: node tools/build/prune.ts <folder>
 */
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OUTSIDE, PACKAGES_BUNDLE } from './packages.ts';
import { isNeedless, packagesToKeep, type PackageManifest } from './pruning.ts';
import { type Lock, type Sbom, SBOM_FILE, withPackages } from './sbom.ts';

function pruneFiles(root: string, below: string): void {
  for (const entry of readdirSync(join(root, below), { withFileTypes: true })) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    // Strips outer packages from the path: nested packages are pruned like top-level ones.
    const name = path.slice(path.lastIndexOf('/node_modules/') + 1).replace(/^node_modules\//, '');
    if (isNeedless(name)) rmSync(join(root, path), { recursive: true });
    else if (entry.isDirectory()) pruneFiles(root, path);
  }
}

/** Deletes the packages that the bundle replaces. Returns the names of the others. */
function prunePackages(root: string): ReadonlySet<string> {
  const needed = packagesToKeep(OUTSIDE, (name) => {
    const file = join(root, name, 'package.json');
    return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as PackageManifest) : undefined;
  });
  for (const entry of readdirSync(root)) {
    const names = entry.startsWith('@')
      ? readdirSync(join(root, entry)).map((name) => `${entry}/${name}`)
      : [entry];
    const kept = names.filter((name) => needed.has(name));
    const removed = kept.length === 0 ? [entry] : names.filter((name) => !needed.has(name));
    for (const name of removed) rmSync(join(root, name), { recursive: true });
  }
  return needed;
}

/**
 * Adds the kept packages to the bill of materials in `file`.
 * @param lock npm's record of the installed packages, which lists some that package-lock.json lacks
 */
function completeSbom(file: string, lock: Lock, needed: ReadonlySet<string>): void {
  const bundled = JSON.parse(readFileSync(file, 'utf8')) as Sbom;
  const folders = [...needed].map((name) => `node_modules/${name}`);
  writeFileSync(file, JSON.stringify(withPackages(bundled, lock, folders), null, 2));
}

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('Usage: node tools/build/prune.ts <folder>');
const packages = join(folder, 'node_modules');
if (existsSync(join(folder, PACKAGES_BUNDLE))) {
  const lock = JSON.parse(readFileSync(join(packages, '.package-lock.json'), 'utf8')) as Lock;
  completeSbom(join(folder, SBOM_FILE), lock, prunePackages(packages));
}
pruneFiles(packages, '');
