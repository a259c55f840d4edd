import type { BuildOptions, OnResolveArgs, OnResolveResult, Plugin, PluginBuild } from 'esbuild';

/** The bundle beside a project's own ones that holds its packages from npm; all its entry points share it. */
export const PACKAGES_BUNDLE = 'packages.js';

/**
 * Packages that stay in `node_modules`: native code, which cannot be bundled, and files that are served as they are. An image keeps
 * these, with what they depend on, and nothing else.
 */
export const OUTSIDE: readonly string[] = [
  '@node-rs/argon2',
  '@node-rs/bcrypt',
  'kerberos',
  'swagger-ui-dist',
];

/** True for what is neither a path nor a part of Node. */
function isPackage(specifier: string): boolean {
  return !/^(?:\.|\/|node:|#)/.test(specifier);
}

/** `@scope/name` or `name` of `@scope/name/file`. */
export function packageOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');
}

/** The source of the packages' bundle: each specifier's module, loaded when it is first asked for as `require` would. */
function packagesSource(specifiers: Iterable<string>): string {
  const members = [...specifiers]
    .sort()
    .map((specifier) => `  ${JSON.stringify(specifier)}: () => require(${JSON.stringify(specifier)}),`);
  return `module.exports = {\n${members.join('\n')}\n};\n`;
}

/** For the workspace's own code: every package is taken from the packages' bundle, and noted. */
export function fromPackagesBundle(noted: Set<string>): Plugin {
  const namespace = 'package';
  return {
    name: 'from packages bundle',
    setup(bundler) {
      bundler.onResolve({ filter: /^[^./]/ }, async (asked) => {
        if (asked.kind === 'entry-point' || asked.path === `./${PACKAGES_BUNDLE}`) return undefined;
        const found = await resolveAsRequired(bundler, asked);
        if (found === undefined || found.external === true) return found;
        noted.add(asked.path);
        return { path: asked.path, namespace };
      });
      bundler.onLoad({ filter: /./, namespace }, ({ path }) => ({
        contents: `module.exports = require('./${PACKAGES_BUNDLE}')[${JSON.stringify(path)}]();`,
      }));
      bundler.onResolve({ filter: /./, namespace }, ({ path }) => ({ path, external: true }));
    },
  };
}

/** How the packages' bundle itself is made. */
export function packagesBundle(specifiers: Iterable<string>, resolveDir: string): BuildOptions {
  return {
    stdin: { contents: packagesSource(specifiers), resolveDir, sourcefile: PACKAGES_BUNDLE },
    // Functions keep their lines and names, so that stack traces can be read without a source map, which would take time and memory.
    sourcemap: false,
    keepNames: false, // each CommonJS module has a scope of its own: nothing is renamed
    legalComments: 'none', // whole licences are written beside the bundle
    plugins: [
      {
        name: 'packages',
        setup(bundler) {
          bundler.onResolve({ filter: /^[^./]/ }, (asked) => resolveAsRequired(bundler, asked));
        },
      },
    ],
  };
}

const RESOLVING = Symbol('asked by this plugin');

/**
 * Resolves a package as Node's `require` does, whatever syntax asks for it: one that offers an ES module as well is there once only, so
 * that its classes and registries are. What is not installed (optional parts of Nest, drivers of other databases) stays outside and
 * fails where it is used, as without a bundle.
 */
async function resolveAsRequired(
  bundler: PluginBuild,
  asked: OnResolveArgs,
): Promise<OnResolveResult | undefined> {
  if (asked.pluginData === RESOLVING || !isPackage(asked.path)) return undefined;
  const external = { path: asked.path, external: true };
  if (OUTSIDE.includes(packageOf(asked.path))) return external;
  const { resolveDir, importer } = asked;
  const found = await bundler.resolve(asked.path, {
    resolveDir,
    importer,
    kind: 'require-call',
    pluginData: RESOLVING,
  });
  return found.errors.length > 0 ? external : found;
}
