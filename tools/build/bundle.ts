/**
 * Bundles deployables: each entry point of a project becomes one CommonJS file under `dist/<project root>/`,
 * which includes the workspace libraries. npm packages stay external, unless `project.json` has `"packages":
 * "bundled"`: then they become one more file in the same folder.
 *
 * Usage: node tools/build/bundle.ts <project root> [<project root> …]
 */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { build, type BuildOptions, type Metafile, type Plugin } from 'esbuild';
import { NODE_MAJOR } from './node-version.ts';
import { bundlesOf, type ProjectFile, readJson, swcPlugin } from './swc-plugin.ts';
import {
  LICENCES_FILE,
  packageFolders,
  thirdPartyLicences,
  emptySbom,
  type Lock,
  SBOM_FILE,
  withPackages,
} from './sbom.ts';
import { ownCode, PACKAGES_BUNDLE, packagesBundles, importedSpecifiers, starters } from './packages.ts';
import { writeWhole } from './write-whole.ts';

const WORKSPACE = join(import.meta.dirname, '../..');

const COMMON: BuildOptions = {
  absWorkingDir: WORKSPACE,
  bundle: true,
  platform: 'node',
  target: `node${String(NODE_MAJOR)}`,
  format: 'cjs',
  logLevel: 'warning',
};

/** A project to bundle: its folder and the content of its `project.json`. */
interface Project {
  readonly root: string;
  readonly file: ProjectFile;
}

/** Returns the entry points of projects: output name → source. */
function programsOf(projects: readonly Project[]): Record<string, string> {
  const programs = projects.flatMap(({ root, file }) =>
    Object.entries(bundlesOf(root, file)).map(([name, source]) => [join(root, name), source]),
  );
  return Object.fromEntries(programs) as Record<string, string>;
}

/** Bundles all programs in one build, so that shared libraries are read once. */
function bundleOwnCode(options: BuildOptions): Promise<Metafile> {
  return buildWhole({
    ...options,
    sourcemap: 'linked',
    sourcesContent: false,
    keepNames: true, // Nest's injection errors, logs and OpenAPI schemas show class names
  });
}

/** Builds into `dist`, replacing each file in one step. Returns the inputs of each output file. */
async function buildWhole(options: BuildOptions): Promise<Metafile> {
  const built = await build({ ...COMMON, ...options, outdir: 'dist', metafile: true, write: false });
  await Promise.all(built.outputFiles.map(({ path, contents }) => writeWhole(path, contents)));
  return built.metafile;
}

async function bundleWithPackages(projects: readonly Project[], swc: Plugin): Promise<void> {
  const programs = programsOf(projects);
  const own = ownCode(programs);
  const [metafile] = await Promise.all([
    bundleOwnCode({ ...own, plugins: [swc, ...own.plugins] }),
    buildWhole(starters(Object.keys(programs))),
  ]);
  const imports = projects.map(({ root }): [string, ReadonlySet<string>] => {
    const outputs = Object.entries(metafile.outputs).filter(([file]) => file.startsWith(`dist/${root}/`));
    return [root, importedSpecifiers(outputs.flatMap(([, { inputs }]) => Object.keys(inputs)))];
  });
  await bundlePackages(new Map(imports));
}

/**
 * Builds the projects' bundles of packages, but only those whose inputs have changed: this is the slowest
 * step, and packages seldom change.
 * @param imports project root → specifiers of the packages it imports
 */
async function bundlePackages(imports: ReadonlyMap<string, ReadonlySet<string>>): Promise<void> {
  const banners = new Map<string, string>();
  const stale = new Map<string, ReadonlySet<string>>();
  for (const [root, specifiers] of imports) {
    const file = join('dist', root, PACKAGES_BUNDLE);
    const banner = await inputsBanner(specifiers);
    if (await startsWith(join(WORKSPACE, file), banner)) continue;
    banners.set(file, banner);
    stale.set(join(root, basename(PACKAGES_BUNDLE, '.js')), specifiers);
  }
  if (stale.size === 0) return;
  const lock = await readJson<Lock>('package-lock.json');
  const { version } = await readJson<{ version: string }>('package.json');
  const { metafile, outputFiles } = await build({
    ...COMMON,
    ...packagesBundles(stale, WORKSPACE),
    outdir: 'dist',
    metafile: true,
    write: false, // written below, each behind its banner
  });
  await Promise.all(
    outputFiles.map(async ({ path, text }) => {
      const file = relative(WORKSPACE, path);
      const inputs = Object.keys(metafile.outputs[file]!.inputs);
      const licences = await thirdPartyLicences(WORKSPACE, inputs);
      await writeWhole(join(dirname(path), LICENCES_FILE), Buffer.from(licences));
      const empty = emptySbom(basename(dirname(path)), version);
      const sbom = withPackages(empty, lock, packageFolders(inputs));
      await writeWhole(join(dirname(path), SBOM_FILE), Buffer.from(JSON.stringify(sbom, null, 2)));
      // Written last: the banner declares all three files complete.
      await writeWhole(path, Buffer.from(`${banners.get(file)!}\n${escapeNonAscii(text)}`));
    }),
  );
}

/**
 * Escapes the non-ASCII characters that esbuild leaves in regular expressions: V8 stores an all-ASCII source
 * in half the memory.
 */
function escapeNonAscii(code: string): string {
  return code.replace(/[^\0-\x7f]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * Returns the first line of a bundle of packages: a digest of its inputs, which are the imported specifiers,
 * the lock file and these build scripts.
 */
async function inputsBanner(specifiers: ReadonlySet<string>): Promise<string> {
  const files = [
    'package-lock.json',
    'tools/build/packages.ts',
    'tools/build/bundle.ts',
    'tools/build/sbom.ts',
  ];
  const texts = await Promise.all(files.map((file) => readFile(join(WORKSPACE, file), 'utf8')));
  const digest = createHash('sha256').update(JSON.stringify([...specifiers].sort().concat(texts)));
  return `// Made from ${digest.digest('hex')}; delete dist/ after changing a package in place.`;
}

async function startsWith(file: string, text: string): Promise<boolean> {
  return existsSync(file) && (await readFile(file, 'utf8')).startsWith(text);
}

async function main(projectRoots: readonly string[]): Promise<void> {
  if (projectRoots.length === 0) throw new Error('Usage: node tools/build/bundle.ts <project root> […]');
  const plugin = await swcPlugin();
  const projects = await Promise.all(projectRoots.map(readProject));
  const isBundled = ({ file }: Project): boolean => file.metadata?.packages === 'bundled';
  await Promise.all([
    writeManifests(projects),
    bundleWithPackages(projects.filter(isBundled), plugin),
    bundleOwnCode({
      entryPoints: programsOf(projects.filter((project) => !isBundled(project))),
      packages: 'external',
      plugins: [plugin],
    }),
  ]);
}

/**
 * Writes each project's package.json. It tells Node that the bundles are CommonJS, and tells a program its
 * version.
 */
async function writeManifests(projects: readonly Project[]): Promise<void> {
  const { version } = await readJson<{ version: string }>('package.json');
  for (const { root } of projects) {
    const manifest = { name: basename(root), version, private: true, license: 'MIT', type: 'commonjs' };
    await writeWhole(
      join(WORKSPACE, 'dist', root, 'package.json'),
      Buffer.from(JSON.stringify(manifest, null, 2)),
    );
  }
}

async function readProject(folder: string): Promise<Project> {
  const root = folder.replace(/\/$/, '');
  return { root, file: await readJson<ProjectFile>(join(root, 'project.json')) };
}

main(process.argv.slice(2)).catch((error: unknown) => {
  // esbuild has already printed its own errors.
  if (!(error instanceof Error && 'errors' in error)) console.error(error);
  process.exitCode = 1;
});
