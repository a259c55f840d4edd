/**
 * Builds a library for publication into `dist/<project root>/`: one ES module, one CommonJS file, types, package.json, and what else its
 * `files` name that lies in the project (README, data). The workspace's own libraries become part of it, so that the package depends on
 * nothing.
 *
 * Usage: node tools/build/client-package.ts <project root>
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'esbuild';

const WORKSPACE = join(import.meta.dirname, '../..');
const TSC = join(WORKSPACE, 'node_modules/typescript/bin/tsc');

async function bundle(entry: string, outfile: string, format: 'esm' | 'cjs'): Promise<void> {
  const tsconfig = join(WORKSPACE, 'tsconfig.base.json');
  await build({
    ...{ absWorkingDir: WORKSPACE, entryPoints: [entry], outfile, format, tsconfig },
    ...{ bundle: true, platform: 'node', target: 'node20', logLevel: 'warning' },
  });
}

async function declareTypes(entry: string, outDir: string): Promise<void> {
  const options = [
    '--declaration',
    '--emitDeclarationOnly',
    '--target',
    'es2023',
    '--strict',
    '--skipLibCheck',
  ];
  const resolution = ['--module', 'esnext', '--moduleResolution', 'bundler', '--types', 'node'];
  const paths = join(outDir, 'tsconfig.json');
  await mkdir(outDir, { recursive: true });
  const config = { extends: join(WORKSPACE, 'tsconfig.base.json'), files: [join(WORKSPACE, entry)] };
  await writeFile(paths, JSON.stringify(config));
  const roots = ['--rootDir', join(WORKSPACE, 'libs'), '--outDir', outDir];
  await promisify(execFile)(process.execPath, [TSC, '-p', paths, ...options, ...resolution, ...roots]);
  await rm(paths);
}

async function main(projectRoot: string | undefined): Promise<void> {
  if (projectRoot === undefined) throw new Error('Usage: node tools/build/client-package.ts <project root>');
  const target = join(WORKSPACE, 'dist', projectRoot);
  const entry = `${projectRoot}/src/index.ts`;
  await rm(target, { recursive: true, force: true });
  await bundle(entry, join(target, 'index.mjs'), 'esm');
  await bundle(entry, join(target, 'index.cjs'), 'cjs');
  await declareTypes(entry, join(target, 'types'));
  const library = projectRoot.split('/').at(-1) ?? '';
  for (const file of ['index.d.mts', 'index.d.cts'])
    await writeFile(join(target, file), `export * from './types/${library}/src/index.js';\n`);
  const source = join(WORKSPACE, projectRoot);
  const { files } = JSON.parse(await readFile(join(source, 'package.json'), 'utf8')) as { files: string[] };
  for (const file of ['package.json', ...files.filter((name) => existsSync(join(source, name)))])
    await copyFile(join(source, file), join(target, file));
}

await main(process.argv[2]);
