/**
 * Takes out of a program's folder what of its `node_modules` a running service never reads; licences stay. Where the program's packages
 * are bundled, only those stay that cannot be.
 *
 * Usage: node tools/build/prune.ts <folder>
 */
import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { OUTSIDE, PACKAGES_BUNDLE } from './packages.ts';
import { isNeedless, neededBeside, type PackageManifest } from './pruning.ts';

function pruneFiles(root: string, below: string): void {
  for (const entry of readdirSync(join(root, below), { withFileTypes: true })) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    // Packages inside packages are pruned like the others.
    const name = path.slice(path.lastIndexOf('/node_modules/') + 1).replace(/^node_modules\//, '');
    if (isNeedless(name)) rmSync(join(root, path), { recursive: true });
    else if (entry.isDirectory()) pruneFiles(root, path);
  }
}

function prunePackages(root: string): void {
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
}

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('Usage: node tools/build/prune.ts <folder>');
const packages = join(folder, 'node_modules');
if (existsSync(join(folder, PACKAGES_BUNDLE))) prunePackages(packages);
pruneFiles(packages, '');
