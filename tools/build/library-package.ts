/**
 * Builds a library for publication into `dist/<project root>/` or the given folder: each entry as an ES
 * module and as CommonJS, type declarations, package.json, and those of its `files` that lie in the project
 * (README, data). Workspace libraries are bundled in. npm packages stay external, so package.json must list
 * them. The entries are the `metadata.entryPoints` of project.json, by default `src/index.ts`; the first is
 * the package's main entry.
 *
 * Usage: node tools/build/library-package.ts <project root> [<folder>]
 */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { build, transform } from 'esbuild';
import { bundlesOf, type ProjectFile, readJson, swcPlugin, workspaceLibraries } from './swc-plugin.ts';

const WORKSPACE = join(import.meta.dirname, '../..');
const TSC = join(WORKSPACE, 'node_modules/typescript/bin/tsc');
const TARGET = { platform: 'node', target: 'node20' } as const;

/**
 * Bundles the entries as ES modules with shared chunks, then converts each file to CommonJS, so that there
 * too a class is the same object in every entry.
 */
async function bundle(entries: Record<string, string>, outdir: string): Promise<void> {
  const { outputFiles } = await build({
    absWorkingDir: WORKSPACE,
    entryPoints: entries,
    outdir,
    write: false,
    logLevel: 'warning',
    bundle: true,
    format: 'esm',
    splitting: true,
    outExtension: { '.js': '.mjs' },
    keepNames: true,
    packages: 'external',
    plugins: [await swcPlugin()],
    ...TARGET,
  });
  await mkdir(outdir, { recursive: true });
  for (const { path, text } of outputFiles) {
    await writeFile(path, text);
    const commonJs = await transform(text, { format: 'cjs', ...TARGET });
    const code = commonJs.code.replaceAll(/(require\("\.\/[\w-]+)\.mjs"\)/g, '$1.cjs")');
    await writeFile(path.replace(/\.mjs$/, '.cjs'), code);
  }
}

/** Emits the declarations of all files that the entries reach, one folder for each library. */
async function declareTypes(entries: readonly string[], outDir: string): Promise<void> {
  const options = ['--declaration', '--emitDeclarationOnly', '--strict', '--skipLibCheck'];
  const resolution = ['--module', 'esnext', '--moduleResolution', 'bundler', '--types', 'node'];
  const project = join(outDir, 'tsconfig.json');
  await mkdir(outDir, { recursive: true });
  // Declarations for untyped packages lie beside the entries.
  const ambient = (await readdir(join(WORKSPACE, dirname(entries[0]!))))
    .filter((file) => file.endsWith('.d.ts'))
    .map((file) => join(dirname(entries[0]!), file));
  const files = [...entries, ...ambient].map((file) => join(WORKSPACE, file));
  await writeFile(project, JSON.stringify({ extends: join(WORKSPACE, 'tsconfig.base.json'), files }));
  const typeRoots = join(WORKSPACE, 'node_modules/@types');
  const roots = ['--rootDir', join(WORKSPACE, 'libs'), '--outDir', outDir, '--typeRoots', typeRoots];
  await promisify(execFile)(process.execPath, [TSC, '-p', project, ...options, ...resolution, ...roots]);
  await rm(project);
  await resolveLibraries(outDir);
}

/** Replaces imports of workspace libraries by relative paths, because their names do not resolve outside. */
async function resolveLibraries(folder: string): Promise<void> {
  const libraries = await workspaceLibraries();
  for (const file of await readdir(folder, { recursive: true })) {
    if (!file.endsWith('.d.ts')) continue;
    const text = await readFile(join(folder, file), 'utf8');
    const resolved = text.replaceAll(/(['"])(@platform\/[\w-]+)\1/g, (quoted, _quote, name: string) => {
      const source = libraries.get(name);
      if (source === undefined) return quoted;
      const path = relative(dirname(file), relative('libs', source).replace(/\.ts$/, ''));
      return `'${path.startsWith('.') ? path : `./${path}`}'`;
    });
    if (resolved !== text) await writeFile(join(folder, file), resolved);
  }
}

async function main([projectRoot, folder]: readonly string[]): Promise<void> {
  if (projectRoot === undefined) throw new Error('Usage: library-package.ts <project root> [<folder>]');
  const target = folder ?? join(WORKSPACE, 'dist', projectRoot);
  const project = await readJson<ProjectFile>(join(projectRoot, 'project.json'));
  const sources = Object.values(bundlesOf(projectRoot, project, 'src/index.ts'));
  // The first entry is called index in the package, whatever its source is called.
  const entries = Object.fromEntries(
    sources.map((source, index) => [index === 0 ? 'index' : basename(source, '.ts'), source]),
  );
  await rm(target, { recursive: true, force: true });
  await bundle(entries, target);
  await declareTypes(sources, join(target, 'types'));
  for (const [name, source] of Object.entries(entries)) {
    const types = `./types/${relative('libs', source).replace(/\.ts$/, '.js')}`;
    for (const extension of ['.d.mts', '.d.cts'])
      await writeFile(join(target, name + extension), `export * from '${types}';\n`);
  }
  const source = join(WORKSPACE, projectRoot);
  const { files } = JSON.parse(await readFile(join(source, 'package.json'), 'utf8')) as { files: string[] };
  for (const file of ['package.json', ...files.filter((name) => existsSync(join(source, name)))])
    await copyFile(join(source, file), join(target, file));
}

await main(process.argv.slice(2));
