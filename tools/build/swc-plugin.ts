import { transformFile, type Options } from '@swc/core';
import type { Plugin } from 'esbuild';
import { readFile } from 'node:fs/promises';
import { join, basename } from 'node:path';

/** The part of a `project.json` that bundling reads. */
export interface ProjectFile {
  readonly name: string;
  readonly metadata?: {
    readonly entryPoints?: readonly string[];
    /**
     * Whether packages from npm are bundled as well, for a quick start; otherwise they are read from
     * `node_modules`.
     */
    readonly packages?: 'bundled';
  };
}

/**
 * The bundles of a project: output name (without extension) → source file. Without `metadata.entryPoints` it
 * has one.
 * @throws {Error} when two entry points would write the same bundle.
 */
export function bundlesOf(
  projectRoot: string,
  project: ProjectFile,
  onlyEntry = 'src/main.ts',
): Record<string, string> {
  const bundles: Record<string, string> = {};
  for (const entry of project.metadata?.entryPoints ?? [onlyEntry]) {
    const name = basename(entry).replace(/\.ts$/, '');
    if (bundles[name] !== undefined) throw new Error(`${project.name}: two entry points are called ${name}`);
    bundles[name] = `./${join(projectRoot, entry)}`; // without the dot esbuild would take it for a package
  }
  return bundles;
}

/** `@platform/x` → source file, from the `paths` of the workspace's TypeScript configuration. */
export function libraryPaths(
  paths: Readonly<Record<string, readonly string[]>>,
): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(paths).flatMap(([name, [first]]) => (first === undefined ? [] : [[name, first] as const])),
  );
}

const WORKSPACE = join(import.meta.dirname, '../..');

/** A file of the workspace. @param path from its root */
export async function readJson<T>(path: string): Promise<T> {
  return JSON.parse(await readFile(join(WORKSPACE, path), 'utf8')) as T;
}

/** `@platform/x` → source file, as the workspace's TypeScript configuration has it. */
export async function workspaceLibraries(): Promise<ReadonlyMap<string, string>> {
  const { compilerOptions } = await readJson<{ compilerOptions: { paths: Record<string, string[]> } }>(
    'tsconfig.base.json',
  );
  return libraryPaths(compilerOptions.paths);
}

/**
 * Finds the workspace's libraries, and has SWC turn TypeScript into JavaScript: esbuild leaves out the types
 * that decorators need at run time (`emitDecoratorMetadata`).
 */
export async function swcPlugin(): Promise<Plugin> {
  const swc = await readJson<Options & { $schema?: string }>('.swcrc');
  delete swc.$schema; // for editors; SWC refuses it as an option
  const libraries = await workspaceLibraries();
  return {
    name: 'swc',
    setup(bundler) {
      bundler.onResolve({ filter: /^@platform\// }, ({ path }) => {
        const file = libraries.get(path);
        return file === undefined
          ? { errors: [{ text: `${path} is not among the paths of tsconfig.base.json` }] }
          : { path: join(WORKSPACE, file) };
      });
      bundler.onLoad({ filter: /\.ts$/ }, async ({ path }) => {
        const { code } = await transformFile(path, { ...swc, swcrc: false, sourceMaps: 'inline' });
        return { contents: code, loader: 'js' };
      });
    },
  };
}
