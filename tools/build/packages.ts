import { basename, dirname, join } from 'node:path';
import type { BuildOptions, OnResolveArgs, OnResolveResult, Plugin, PluginBuild } from 'esbuild';

/** File with a project's npm packages, beside the project's own bundles; all its entry points share it. */
export const PACKAGES_BUNDLE = 'packages.js';

/**
 * Packages that stay in `node_modules`: native code, which cannot be bundled, and static files that are
 * served unchanged. An image keeps these and their binaries for its platform, and no other package.
 */
export const OUTSIDE: readonly string[] = [
  '@node-rs/argon2',
  '@node-rs/bcrypt',
  'kerberos',
  'swagger-ui-dist',
];

/**
 * Nest's default HTTP server, which Nest loads only for an application that names no other server. With
 * Express and its data tables it is a fifth of the code of all packages.
 */
const NEVER_LOADED = '@nestjs/platform-express';

/** True for a package's specifier: no path, no `node:` module, no `#` import. */
function isPackage(specifier: string): boolean {
  return !/^(?:\.|\/|node:|#)/.test(specifier);
}

/** Returns the package's name: `@scope/name` for `@scope/name/file`. */
export function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

/**
 * Returns the source of a bundle of packages: one function for each specifier, which requires its module when
 * it is first called.
 */
function packagesSource(specifiers: Iterable<string>): string {
  const members = [...specifiers]
    .sort()
    .map((specifier) => `  ${JSON.stringify(specifier)}: () => require(${JSON.stringify(specifier)}),`);
  return `module.exports = {\n${members.join('\n')}\n};\n`;
}

/** esbuild namespace of the package imports that are redirected to the bundle of packages. */
const REDIRECTED = 'package';
/** Start script of every program; it loads the program's own code from the folder `code`. */
const STARTER = join(import.meta.dirname, 'start-program.ts');

/** Wraps an output in one function with Node's five CommonJS parameters, followed by `more`. */
const asFunction = (...more: string[]) => ({
  banner: {
    js: `(function (${['exports', 'require', 'module', '__filename', '__dirname', ...more].join()}) {`,
  },
  footer: { js: '})' },
});

/**
 * Returns build options for the programs' own code, which loads every package from the bundle of packages
 * beside it.
 * @param entryPoints output name → source
 */
export function ownCode(entryPoints: Readonly<Record<string, string>>): BuildOptions & { plugins: Plugin[] } {
  const named = Object.entries(entryPoints).map(([name, source]) => ({
    in: source,
    out: join(dirname(name), 'code', basename(name)),
  }));
  return { ...asFunction('packages'), entryPoints: named, plugins: [fromPackagesBundle()] };
}

/** Returns build options for the programs' start scripts. @param names of the outputs */
export function starters(names: readonly string[]): BuildOptions {
  return { entryPoints: names.map((out) => ({ in: STARTER, out })) };
}

function fromPackagesBundle(): Plugin {
  const namespace = REDIRECTED;
  return {
    name: 'from packages bundle',
    setup(bundler) {
      const resolveAsRequired = resolver(bundler);
      bundler.onResolve({ filter: /^[^./]/ }, async (args) => {
        if (args.kind === 'entry-point') return undefined;
        const found = await resolveAsRequired(args);
        return found === undefined || found.external === true ? found : { path: args.path, namespace };
      });
      bundler.onLoad({ filter: /./, namespace }, ({ path }) => ({
        contents: `module.exports = packages[${JSON.stringify(path)}]();`,
      }));
    },
  };
}

/**
 * Returns the specifiers of the packages that programs import.
 * @param inputs of the programs, from esbuild's metafile
 */
export function importedSpecifiers(inputs: readonly string[]): Set<string> {
  const prefix = `${REDIRECTED}:`;
  return new Set(inputs.flatMap((input) => (input.startsWith(prefix) ? [input.slice(prefix.length)] : [])));
}

/**
 * Returns build options for several bundles of packages at once, so that a shared package is read once.
 * @param bundles output name → specifiers
 */
export function packagesBundles(
  bundles: ReadonlyMap<string, ReadonlySet<string>>,
  resolveDir: string,
): BuildOptions {
  const namespace = 'packages';
  return {
    entryPoints: [...bundles.keys()].map((out) => ({ in: `${namespace}:${out}`, out })),
    // Stack traces stay readable without a source map, which would cost time and memory: functions keep their
    // names, and lines are short.
    sourcemap: false,
    keepNames: false, // not needed: each CommonJS module has its own scope, so no name changes
    legalComments: 'none', // full licences are written beside the bundle
    minifyWhitespace: true, // comments are a third of the size
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

/** Marks this plugin's own calls of `bundler.resolve`, so that it does not handle them again. */
const RESOLVING = Symbol('resolved by this plugin');

/**
 * Returns an `onResolve` callback that resolves packages as Node's `require` does, for `import` too: a
 * package that also has an ES module is bundled once, so its classes and registries exist once. A package
 * that is not installed (optional parts of Nest, drivers of other databases) stays external and fails where
 * it is used, as without a bundle.
 */
function resolver(bundler: PluginBuild): (args: OnResolveArgs) => Promise<OnResolveResult | undefined> {
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
  // Memoised: resolving is slow, and all files of a folder get the same result.
  const known = new Map<string, Promise<OnResolveResult>>();
  return async (args) => {
    if (args.pluginData === RESOLVING || !isPackage(args.path)) return undefined;
    const key = JSON.stringify([args.resolveDir, args.path]);
    const result = known.get(key) ?? resolve(args);
    known.set(key, result);
    return result;
  };
}
