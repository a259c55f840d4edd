import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { Rule } from 'eslint';

const IMPORTED = /(?:\bfrom|\bimport\(?)\s*['"]([^'"]+)['"]/g;

/** What each file imports, read once for as long as the linter runs. */
const imported = new Map<string, readonly string[]>();

/**
 * No file imports itself by way of others, not even for a type: neither could be read, or moved, without the
 * other.
 */
export const noImportCycle: Rule.RuleModule = {
  meta: { type: 'problem', messages: { cycle: 'the file imports itself: {{path}}' } },
  create(context) {
    return {
      'ImportDeclaration, ExportNamedDeclaration, ImportExpression'(
        node: Rule.Node & { source: { value?: unknown } | null },
      ): void {
        const first = resolveImport(String(node.source?.value), context.filename, context.cwd);
        const way = first === null ? null : findWay(first, context.filename, context.cwd);
        if (way === null) return;
        const path = way.map((file) => relative(context.cwd, file)).join(' → ');
        context.report({ node, messageId: 'cycle', data: { path } });
      },
    };
  },
};

/** The files from one to another, both included; null when no imports lead there. */
function findWay(from: string, to: string, workspace: string): string[] | null {
  const cameFrom = new Map<string, string | null>([[from, null]]);
  // It grows while it is walked.
  for (const file of cameFrom.keys()) {
    if (file === to) return wayTo(file, cameFrom);
    for (const next of importsOf(file, workspace)) if (!cameFrom.has(next)) cameFrom.set(next, file);
  }
  return null;
}

function wayTo(end: string, cameFrom: ReadonlyMap<string, string | null>): string[] {
  const previous = cameFrom.get(end) ?? null;
  return previous === null ? [end] : [...wayTo(previous, cameFrom), end];
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
 * The TypeScript file of this workspace that `source` names in `importer`; null for packages and other files.
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
