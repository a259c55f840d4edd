import { dirname, join } from 'node:path';
import { readCachedProjectGraph, type ProjectGraph } from '@nx/devkit';
import type { Rule } from 'eslint';
import { findPath } from './find-path.ts';
import { workspacePath } from './paths.ts';

/** A row of the dependency table, in the shape that Nx's own lint rule takes. */
interface DependencyConstraint {
  readonly sourceTag: string;
  readonly onlyDependOnLibsWithTags: readonly string[];
  /** Package names; a trailing `*` is a wildcard. */
  readonly bannedExternalImports?: readonly string[];
}

interface Options {
  readonly depConstraints: readonly DependencyConstraint[];
  /** Pairs of projects that may depend on each other, because their tests do. */
  readonly ignoredCircularDependencies: readonly (readonly [string, string])[];
}

interface Project {
  readonly name: string;
  readonly root: string;
  readonly tags: readonly string[];
}

let graph: ProjectGraph | undefined;

/**
 * Enforces which project may import which, by the tags in Nx's project graph. Replaces
 * `@nx/enforce-module-boundaries`, whose package brings 124 others (docs/decisions/0008).
 */
export const moduleBoundaries: Rule.RuleModule = {
  meta: {
    type: 'problem',
    schema: [{ type: 'object' }],
    messages: {
      relative: "a relative import may not leave its project, but this one leads to '{{target}}'",
      constraint:
        "a project with the tag {{tag}} may only depend on projects with {{allowed}}; '{{target}}' has none of these",
      banned: "a project with the tag {{tag}} may not import '{{source}}'",
      circular: 'Circular dependency between projects: {{path}}',
    },
  },
  create(context) {
    graph ??= readCachedProjectGraph();
    const options = context.options[0] as Options;
    const file = workspacePath(context);
    const from = projectOf(graph, file);
    if (from === null) return {};
    const check = (node: Rule.Node & { source?: { value?: unknown } | null | undefined }): void => {
      const problem = problemOf(String(node.source?.value), {
        file,
        from,
        graph: graph as ProjectGraph,
        options,
      });
      if (problem !== null) context.report({ node, ...problem });
    };
    return { ImportDeclaration: check, ExportNamedDeclaration: check, ImportExpression: check };
  },
};

interface Importer {
  readonly file: string;
  readonly from: Project;
  readonly graph: ProjectGraph;
  readonly options: Options;
}

interface Problem {
  readonly messageId: string;
  readonly data: Record<string, string>;
}

function problemOf(source: string, { file, from, graph, options }: Importer): Problem | null {
  const constraints = options.depConstraints.filter(({ sourceTag }) => from.tags.includes(sourceTag));
  const path = pathOf(source, file);
  if (path === null) {
    const banned = constraints.find((each) =>
      each.bannedExternalImports?.some((name) => matches(name, source)),
    );
    return banned ? { messageId: 'banned', data: { tag: banned.sourceTag, source } } : null;
  }
  const target = projectOf(graph, path);
  if (target === null || target.name === from.name) return null;
  if (source.startsWith('.')) return { messageId: 'relative', data: { target: target.name } };
  const broken = constraints.find(
    (each) => !each.onlyDependOnLibsWithTags.some((tag) => target.tags.includes(tag)),
  );
  if (broken) {
    const allowed = broken.onlyDependOnLibsWithTags.join(', ');
    return { messageId: 'constraint', data: { tag: broken.sourceTag, allowed, target: target.name } };
  }
  const pathBack = findPath(target.name, from.name, (project) =>
    dependenciesOf(project, graph, options.ignoredCircularDependencies),
  );
  return pathBack && { messageId: 'circular', data: { path: [from.name, ...pathBack].join(' → ') } };
}

/** Returns the workspace path that the import `source` refers to; null for a package. */
function pathOf(source: string, file: string): string | null {
  if (source.startsWith('.')) return join(dirname(file), source);
  const [, library] = /^@platform\/([^/]+)$/.exec(source) ?? [];
  if (library !== undefined) return `libs/${library}/src/index.ts`;
  if (source.startsWith('#verification/')) return source.slice(1);
  return source.startsWith('#') ? `tools/${source.slice(1)}` : null;
}

function projectOf(graph: ProjectGraph, path: string): Project | null {
  const found = Object.values(graph.nodes).find(({ data }) => path.startsWith(`${data.root}/`));
  return found ? { name: found.name, root: found.data.root, tags: found.data.tags ?? [] } : null;
}

function matches(pattern: string, source: string): boolean {
  if (pattern.endsWith('*')) return source.startsWith(pattern.slice(0, -1));
  return source === pattern || source.startsWith(`${pattern}/`);
}

function dependenciesOf(
  project: string,
  { dependencies }: ProjectGraph,
  ignored: Options['ignoredCircularDependencies'],
): string[] {
  const targets = (dependencies[project] ?? []).map(({ target }) => target);
  return targets.filter((target) => !isIgnored(ignored, project, target));
}

function isIgnored(ignored: Options['ignoredCircularDependencies'], from: string, to: string): boolean {
  return ignored.some((pair) => pair.includes(from) && pair.includes(to));
}
