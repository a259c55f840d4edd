import { readdirSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { Rule } from 'eslint';
import { findPath } from './find-path.ts';
import { importsOf, resolveImport } from './imports.ts';
import { isTestFile, workspacePath } from './paths.ts';

/**
 * Folder → the folders that it imports, each with one file that imports it. Cached for as long as the linter
 * runs.
 */
const importedFolders = new Map<string, ReadonlyMap<string, string>>();

/**
 * Refuses import cycles between the folders of one project, type-only imports included: no folder of a cycle
 * can be understood without the others, and none owns what they share. A folder and its parent count as two.
 * Tests do not count as importers, nor do files that compose folders: a lib's index.ts, Nest modules, and the
 * files at the root of an app or a tool.
 */
export const noFolderCycle: Rule.RuleModule = {
  meta: {
    type: 'problem',
    schema: [],
    messages: {
      cycle:
        'import cycle of folders: {{path}} (by {{files}}). Move what they share to the folder that owns it.',
    },
  },
  create(context) {
    const { cwd, filename } = context;
    const file = workspacePath(context);
    const root = rootOf(file);
    if (root === null || composesFolders(file)) return {};
    const folder = dirname(file);
    const importedBy = (one: string): string[] => [...importedFoldersOf(one, cwd).keys()];
    return {
      'ImportDeclaration, ExportNamedDeclaration, ImportExpression'(
        node: Rule.Node & { source: { value?: unknown } | null },
      ): void {
        const target = resolveImport(String(node.source?.value), filename, cwd);
        if (target === null || rootOf(relative(cwd, target)) !== root) return;
        const imported = dirname(relative(cwd, target));
        if (imported === folder) return;
        const back = findPath(imported, folder, importedBy);
        if (back === null) return;
        const path = [folder, ...back].map((each) => relative(dirname(root), each)).join(' → ');
        const files = back.slice(1).map((to, at) => importedFoldersOf(back[at] ?? '', cwd).get(to));
        context.report({ node, messageId: 'cycle', data: { path, files: files.join(', ') } });
      },
    };
  },
};

/** Returns the folder that holds all code of the project; null for a file elsewhere. */
function rootOf(path: string): string | null {
  return /^(?:(?:apps|libs)\/[^/]+\/src|(?:tools|verification)\/[^/]+)(?=\/)/.exec(path)?.[0] ?? null;
}

function composesFolders(path: string): boolean {
  if (isTestFile(path) || /(\.module|\/src\/index)\.ts$/.test(path)) return true;
  return dirname(path) === rootOf(path) && !path.startsWith('libs/');
}

/** Returns the other folders of the project that a folder imports, each with a file that imports it. */
function importedFoldersOf(folder: string, workspace: string): ReadonlyMap<string, string> {
  const known = importedFolders.get(folder);
  if (known) return known;
  const found = new Map<string, string>();
  for (const name of readdirSync(join(workspace, folder)).filter((each) => each.endsWith('.ts'))) {
    const file = join(folder, name);
    if (composesFolders(file)) continue;
    for (const imported of importsOf(join(workspace, file), workspace)) {
      const target = relative(workspace, imported);
      if (dirname(target) !== folder && rootOf(target) === rootOf(file) && !found.has(dirname(target)))
        found.set(dirname(target), file);
    }
  }
  importedFolders.set(folder, found);
  return found;
}
