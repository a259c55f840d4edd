import { basename, dirname, join } from 'node:path';
import type { BuildOptions, OnResolveArgs, OnResolveResult, Plugin, PluginBuild } from 'esbuild';

/** The bundle beside a project's own ones that holds its packages from npm; all its entry points share it. */
export const PACKAGES_BUNDLE = 'packages.js';

/**
 * Packages that stay in `node_modules`: native code, which cannot be bundled, and files that are served as
 * they are. An image keeps these, with what they depend on, and nothing else.
 */
export const OUTSIDE: readonly string[] = [
  '@node-rs/argon2',
  '@node-rs/bcrypt',
  'kerberos',
  'swagger-ui-dist',
];

/**
 * What Nest would load for an application that names no HTTP server: with Express and its tables a fifth of
 * all packages.
 */
const NEVER_LOADED = '@nestjs/platform-express';

/** True for what is neither a path nor a part of Node. */
function isPackage(specifier: string): boolean {
  return !/^(?:\.|\/|node:|#)/.test(specifier);
}

/** `@scope/name` or `name` of `@scope/name/file`. */
export function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

/**
 * The source of the packages' bundle: each specifier's module, loaded when it is first asked for as `require`
 * would.
 */
function packagesSource(specifiers: Iterable<string>): string {
  const members = [...specifiers]
    .sort()
    .map((specifier) => `  ${JSON.stringify(specifier)}: () => require(${JSON.stringify(specifier)}),`);
  return `module.exports = {\n${members.join('\n')}\n};\n`;
}

const TAKEN = 'package';
/** What programs are started by; it loads their own code from the folder `code`. */
const STARTER = join(import.meta.dirname, 'start-program.ts');

/** A file that consists of one function: what Node makes of a CommonJS file when it loads it. */
const asFunction = (...more: string[]) => ({
  banner: {
    js: `(function (${['exports', 'require', 'module', '__filename', '__dirname', ...more].join()}) {`,
  },
  footer: { js: '})' },
});

/**
 * How the own code of programs is made: every package is taken from the bundle of packages beside the
 * program.
 * @param entryPoints output name → source
 */
export function ownCode(entryPoints: Readonly<Record<string, string>>): BuildOptions & { plugins: Plugin[] } {
  const named = Object.entries(entryPoints).map(([name, source]) => ({
    in: source,
    out: join(dirname(name), 'code', basename(name)),
  }));
  return { ...asFunction('packages'), entryPoints: named, plugins: [fromPackagesBundle()] };
}

/** How programs with own code and a bundle of packages are made. @param names of the outputs */
export function starters(names: readonly string[]): BuildOptions {
  return { entryPoints: names.map((out) => ({ in: STARTER, out })) };
}

function fromPackagesBundle(): Plugin {
  const namespace = TAKEN;
  return {
    name: 'from packages bundle',
    setup(bundler) {
      const resolveAsRequired = resolver(bundler);
      bundler.onResolve({ filter: /^[^./]/ }, async (asked) => {
        if (asked.kind === 'entry-point') return undefined;
        const found = await resolveAsRequired(asked);
        return found === undefined || found.external === true ? found : { path: asked.path, namespace };
      });
      bundler.onLoad({ filter: /./, namespace }, ({ path }) => ({
        contents: `module.exports = packages[${JSON.stringify(path)}]();`,
      }));
    },
  };
}

/** What programs take from their bundle of packages. @param inputs of the programs, as esbuild lists them */
export function packagesTaken(inputs: readonly string[]): Set<string> {
  const prefix = `${TAKEN}:`;
  return new Set(inputs.flatMap((input) => (input.startsWith(prefix) ? [input.slice(prefix.length)] : [])));
}

/**
 * How bundles of packages are made, several at once, so that what they share is read once.
 * @param bundles output name → specifiers
 */
export function packagesBundles(
  bundles: ReadonlyMap<string, ReadonlySet<string>>,
  resolveDir: string,
): BuildOptions {
  const namespace = 'packages';
  return {
    entryPoints: [...bundles.keys()].map((out) => ({ in: `${namespace}:${out}`, out })),
    // Functions keep their lines and names, so that stack traces can be read without a source map, which
    // would take time and memory.
    sourcemap: false,
    keepNames: false, // each CommonJS module has a scope of its own: nothing is renamed
    legalComments: 'none', // whole licences are written beside the bundle
    minifyWhitespace: true, // comments are a third of it
    lineLimit: 120,
    ...asFunction(),
    plugins: [
      {
        name: namespace,
        setup(bundler) {
          bundler.onResolve({ filter: new RegExp(`^${namespace}:`) }, ({ path }) => ({
            path: path.slice(namespace.length + 1),
            namespace,
          }));
          bundler.onLoad({ filter: /./, namespace }, ({ path }) => ({
            contents: packagesSource(bundles.get(path) ?? []),
            resolveDir,
          }));
          const resolveAsRequired = resolver(bundler);
          bundler.onResolve({ filter: /^[^./]/ }, resolveAsRequired);
        },
      },
    ],
  };
}

const RESOLVING = Symbol('asked by this plugin');

/**
 * Resolves a package as Node's `require` does, whatever syntax asks for it: one that offers an ES module as
 * well is there once only, so that its classes and registries are. What is not installed (optional parts of
 * Nest, drivers of other databases) stays outside and fails where it is used, as without a bundle.
 */
function resolver(bundler: PluginBuild): (asked: OnResolveArgs) => Promise<OnResolveResult | undefined> {
  const resolve = async ({ path, resolveDir, importer }: OnResolveArgs): Promise<OnResolveResult> => {
    const external = { path, external: true };
    if ([...OUTSIDE, NEVER_LOADED].includes(packageOf(path))) return external;
    const found = await bundler.resolve(path, {
      resolveDir,
      importer,
      kind: 'require-call',
      pluginData: RESOLVING,
    });
    return found.errors.length > 0 ? external : found;
  };
  // The result is the same for all files of a folder, and resolving takes long.
  const known = new Map<string, Promise<OnResolveResult>>();
  return async (asked) => {
    if (asked.pluginData === RESOLVING || !isPackage(asked.path)) return undefined;
    const key = JSON.stringify([asked.resolveDir, asked.path]);
    const result = known.get(key) ?? resolve(asked);
    known.set(key, result);
    return result;
  };
}
