/**
 * Bundles deployables: each entry point of a project with the workspace's libraries it uses becomes one CommonJS file under
 * `dist/<project root>/`. Packages from npm stay outside, or, where `project.json` says `"packages": "bundled"`, become one more file
 * beside it.
 *
 * Usage: node tools/build/bundle.ts <project root> [<project root> …]
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { transformFile, type Options } from '@swc/core';
import { build, type BuildOptions, type Plugin } from 'esbuild';
import { bundlesOf, libraryPaths, type ProjectFile } from './entry-points.ts';
import { LICENCES_FILE, thirdPartyLicences } from './licences.ts';
import { PACKAGES_BUNDLE, fromPackagesBundle, packagesBundle } from './packages.ts';

const WORKSPACE = join(import.meta.dirname, '../..');

async function readJson<T>(path: string): Promise<T> {
  return JSON.parse(await readFile(join(WORKSPACE, path), 'utf8')) as T;
}

/** esbuild leaves out the types that decorators need at run time (`emitDecoratorMetadata`), so SWC turns TypeScript into JavaScript. */
function swcPlugin(swc: Options, libraries: ReadonlyMap<string, string>): Plugin {
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

const COMMON: BuildOptions = {
  absWorkingDir: WORKSPACE,
  bundle: true,
  platform: 'node',
  target: 'node24',
  format: 'cjs',
  logLevel: 'warning',
};

async function bundle(projectRoot: string, swc: Plugin): Promise<void> {
  const project = await readJson<ProjectFile>(join(projectRoot, 'project.json'));
  const folder = join('dist', projectRoot);
  const bundled = project.metadata?.packages === 'bundled';
  const packages = new Set<string>();
  await build({
    ...COMMON,
    entryPoints: bundlesOf(projectRoot, project),
    outdir: folder,
    packages: bundled ? 'bundle' : 'external',
    plugins: bundled ? [swc, fromPackagesBundle(packages)] : [swc],
    sourcemap: 'linked',
    sourcesContent: false,
    keepNames: true, // Nest's injection errors, logs and OpenAPI schemas show class names
  });
  if (bundled) await bundlePackages(packages, folder);
}

/** Made anew only when it would be another: that takes longer than everything else, and packages seldom change. */
async function bundlePackages(packages: ReadonlySet<string>, folder: string): Promise<void> {
  const outfile = join(folder, PACKAGES_BUNDLE);
  const banner = await inputsBanner(packages);
  if (await startsWith(join(WORKSPACE, outfile), banner)) return;
  const { metafile } = await build({
    ...COMMON,
    ...packagesBundle(packages, WORKSPACE),
    outfile,
    metafile: true,
    banner: { js: banner },
  });
  const licences = await thirdPartyLicences(WORKSPACE, Object.keys(metafile.inputs));
  await writeFile(join(WORKSPACE, folder, LICENCES_FILE), licences);
}

/** A first line that tells what a bundle of packages was made from: versions, what is asked of them, and how it is made. */
async function inputsBanner(packages: ReadonlySet<string>): Promise<string> {
  const files = [
    'package-lock.json',
    'tools/build/packages.ts',
    'tools/build/bundle.ts',
    'tools/build/licences.ts',
  ];
  const texts = await Promise.all(files.map((file) => readFile(join(WORKSPACE, file), 'utf8')));
  const digest = createHash('sha256').update(JSON.stringify([...packages].sort().concat(texts)));
  return `// Made from ${digest.digest('hex')}; delete dist/ after changing a package in place.`;
}

async function startsWith(file: string, text: string): Promise<boolean> {
  return existsSync(file) && (await readFile(file, 'utf8')).startsWith(text);
}

async function main(projectRoots: readonly string[]): Promise<void> {
  if (projectRoots.length === 0) throw new Error('Usage: node tools/build/bundle.ts <project root> […]');
  const swc = await readJson<Options & { $schema?: string }>('.swcrc');
  delete swc.$schema; // for editors; SWC refuses it as an option
  const { compilerOptions } = await readJson<{ compilerOptions: { paths: Record<string, string[]> } }>(
    'tsconfig.base.json',
  );
  const plugin = swcPlugin(swc, libraryPaths(compilerOptions.paths));
  await Promise.all(projectRoots.map((root) => bundle(root.replace(/\/$/, ''), plugin)));
}

main(process.argv.slice(2)).catch((error: unknown) => {
  // esbuild has printed its own findings.
  if (!(error instanceof Error && 'errors' in error)) console.error(error);
  process.exitCode = 1;
});
