/**
 * Takes out of a program's folder what of its `node_modules` a running service never reads; licences stay.
 * Where the program's packages are bundled, only those stay that cannot be, and the bill of materials names
 * them too.
 *
 * Usage: node tools/build/prune.ts <folder>
 */
import { existsSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { OUTSIDE, PACKAGES_BUNDLE } from './packages.ts';
import { isNeedless, neededBeside, type PackageManifest } from './pruning.ts';
import { type Lock, type Sbom, SBOM_FILE, withPackages } from './sbom.ts';

function pruneFiles(root: string, below: string): void {
  for (const entry of readdirSync(join(root, below), { withFileTypes: true })) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    // Packages inside packages are pruned like the others.
    const name = path.slice(path.lastIndexOf('/node_modules/') + 1).replace(/^node_modules\//, '');
    if (isNeedless(name)) rmSync(join(root, path), { recursive: true });
    else if (entry.isDirectory()) pruneFiles(root, path);
  }
}

/** Gives the names of the packages that stay. */
function prunePackages(root: string): ReadonlySet<string> {
  const needed = neededBeside(OUTSIDE, (name) => {
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

/** The lock file that npm keeps of what is installed knows also what package-lock.json does not. */
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
