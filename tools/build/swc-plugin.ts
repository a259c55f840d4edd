import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { transformFile, type Options } from '@swc/core';
import type { Plugin } from 'esbuild';
import { libraryPaths } from './entry-points.ts';

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

/** Finds the workspace's libraries, and has SWC turn TypeScript into JavaScript: esbuild leaves out the types that decorators need at run
 *  time (`emitDecoratorMetadata`). */
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
