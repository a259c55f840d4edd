import { relative } from 'node:path';
import type { Rule } from 'eslint';
import { findPath } from './find-path.ts';
import { importsOf, resolveImport } from './imports.ts';

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
        const { cwd, filename } = context;
        const first = resolveImport(String(node.source?.value), filename, cwd);
        const cycle = first === null ? null : findPath(first, filename, (file) => importsOf(file, cwd));
        if (cycle === null) return;
        const path = cycle.map((file) => relative(cwd, file)).join(' → ');
        context.report({ node, messageId: 'cycle', data: { path } });
      },
    };
  },
};
