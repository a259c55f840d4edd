/**
 * Takes out of a folder of installed packages what a running service never reads; licences stay.
 *
 * Usage: node tools/build/prune.ts <node_modules>
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isNeedless } from './pruning.ts';

function prune(root: string, below: string): void {
  for (const entry of readdirSync(join(root, below), { withFileTypes: true })) {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    // Packages inside packages are pruned like the others.
    const name = path.slice(path.lastIndexOf('/node_modules/') + 1).replace(/^node_modules\//, '');
    if (isNeedless(name)) rmSync(join(root, path), { recursive: true });
    else if (entry.isDirectory()) prune(root, path);
  }
}

const [folder] = process.argv.slice(2);
if (folder === undefined) throw new Error('Usage: node tools/build/prune.ts <node_modules>');
prune(folder, '');
