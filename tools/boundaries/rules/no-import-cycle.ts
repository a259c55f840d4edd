import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { Rule } from 'eslint';

const IMPORTED = /(?:\bfrom|\bimport\(?)\s*['"]([^'"]+)['"]/g;

/** Imports of each file, cached for as long as the linter runs. */
const imported = new Map<string, readonly string[]>();

/**
 * Refuses import cycles, type-only imports included: the files of a cycle cannot be understood or moved one
 * at a time.
 */
export const noImportCycle: Rule.RuleModule = {
  meta: { type: 'problem', messages: { cycle: 'import cycle: {{path}}' } },
  create(context) {
    return {
      'ImportDeclaration, ExportNamedDeclaration, ImportExpression'(
        node: Rule.Node & { source: { value?: unknown } | null },
      ): void {
        const first = resolveImport(String(node.source?.value), context.filename, context.cwd);
        const cycle = first === null ? null : findPath(first, context.filename, context.cwd);
        if (cycle === null) return;
        const path = cycle.map((file) => relative(context.cwd, file)).join(' → ');
        context.report({ node, messageId: 'cycle', data: { path } });
      },
    };
  },
};

/** Returns the files on the shortest import path, both ends included; null without such a path. */
function findPath(from: string, to: string, workspace: string): string[] | null {
  const cameFrom = new Map<string, string | null>([[from, null]]);
  // Breadth-first: the loop also visits the files that its body adds.
  for (const file of cameFrom.keys()) {
    if (file === to) return pathTo(file, cameFrom);
    for (const next of importsOf(file, workspace)) if (!cameFrom.has(next)) cameFrom.set(next, file);
  }
  return null;
}

function pathTo(end: string, cameFrom: ReadonlyMap<string, string | null>): string[] {
  const previous = cameFrom.get(end) ?? null;
  return previous === null ? [end] : [...pathTo(previous, cameFrom), end];
}

function importsOf(file: string, workspace: string): readonly string[] {
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
function resolveImport(source: string, importer: string, workspace: string): string | null {
  const path = source
    .replace(/^\.\.?\//, `${dirname(importer)}/$&`)
    .replace(/^@platform\/(.+)$/, join(workspace, 'libs/$1/src/index'))
    .replace(/^#verification\//, join(workspace, 'verification/'))
    .replace(/^#/, join(workspace, 'tools/'));
  if (path === source) return null;
  const file = join(path.endsWith('.ts') ? path : `${path}.ts`);
  return existsSync(file) ? file : null;
}
