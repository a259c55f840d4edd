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
     * `bundled` bundles npm packages as well, for a faster start. Without it they are loaded from
     * `node_modules`.
     */
    readonly packages?: 'bundled';
  };
}

/**
 * Returns the bundles of a project: output name (without extension) → source file. Without
 * `metadata.entryPoints` the only source is `onlyEntry`.
 * @throws {Error} if two entry points would write the same bundle.
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
    bundles[name] = `./${join(projectRoot, entry)}`; // without the dot, esbuild would look for a package
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

/** Reads a JSON file. @param path from the workspace root */
export async function readJson<T>(path: string): Promise<T> {
  return JSON.parse(await readFile(join(WORKSPACE, path), 'utf8')) as T;
}

/** Returns `@platform/x` → source file, from the workspace's TypeScript configuration. */
export async function workspaceLibraries(): Promise<ReadonlyMap<string, string>> {
  const { compilerOptions } = await readJson<{ compilerOptions: { paths: Record<string, string[]> } }>(
    'tsconfig.base.json',
  );
  return libraryPaths(compilerOptions.paths);
}

/**
 * Returns an esbuild plugin that resolves workspace libraries and compiles TypeScript with SWC, because
 * esbuild does not emit the types that decorators need at run time (`emitDecoratorMetadata`).
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
