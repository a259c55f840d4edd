import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const IMPORTED = /(?:\bfrom|\bimport\(?)\s*['"]([^'"]+)['"]/g;

/** Imports of each file, cached for as long as the linter runs. */
const imported = new Map<string, readonly string[]>();

/** Returns the workspace's TypeScript files that a file imports, type-only imports included. */
export function importsOf(file: string, workspace: string): readonly string[] {
  const known = imported.get(file);
  if (known) return known;
  const sources = [...readFileSync(file, 'utf8').matchAll(IMPORTED)].map(([, source]) => source ?? '');
  const found = sources.flatMap((source) => resolveImport(source, file, workspace) ?? []);
  imported.set(file, found);
  return found;
}

/**
 * Returns the workspace's TypeScript file that `source` means in `importer`; null for packages and other
 * files.
 */
export function resolveImport(source: string, importer: string, workspace: string): string | null {
  const path = source
    .replace(/^\.\.?\//, `${dirname(importer)}/$&`)
    .replace(/^@platform\/(.+)$/, join(workspace, 'libs/$1/src/index'))
    .replace(/^#verification\//, join(workspace, 'verification/'))
    .replace(/^#/, join(workspace, 'tools/'));
  if (path === source) return null;
  const file = join(path.endsWith('.ts') ? path : `${path}.ts`);
  return existsSync(file) ? file : null;
}
