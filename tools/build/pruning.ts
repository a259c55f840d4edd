/**
 * Files of npm packages that only people, compilers and browsers read: declarations, sources, documentation,
 * other builds.
 */
const NEEDLESS_FILE = /\.(?:d\.[cm]?ts|map|md|markdown|flow|tsbuildinfo)$/i;
const NEEDLESS_FOLDERS: ReadonlySet<string> = new Set([
  'typeorm/browser',
  'rxjs/src',
  'rxjs/dist/bundles',
  'rxjs/dist/esm',
  'rxjs/dist/esm5',
  'rxjs/dist/types',
  'luxon/src',
  'luxon/build/amd',
  'luxon/build/es6',
  'luxon/build/global',
  'zod/src',
]);

/**
 * True for a file or folder in `node_modules` that a running service never reads.
 * @param path below `node_modules`, with forward slashes
 */
export function isNeedless(path: string): boolean {
  return NEEDLESS_FOLDERS.has(path) || (NEEDLESS_FILE.test(path) && !/(?:^|\/)licen[cs]e/i.test(path));
}

/** The part of a package's `package.json` that pruning reads. */
export interface PackageManifest {
  /** In a native package: the packages with its binaries, one for each platform. */
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

/**
 * Returns the installed packages that a service with bundled packages still loads: those that cannot be
 * bundled, and their binaries for this platform. Their other dependencies are needed only during
 * installation.
 * @param manifestOf returns the manifest of an installed package, undefined for one that is not installed
 */
export function packagesToKeep(
  outside: readonly string[],
  manifestOf: (name: string) => PackageManifest | undefined,
): ReadonlySet<string> {
  const binaries = outside.flatMap((name) => Object.keys(manifestOf(name)?.optionalDependencies ?? {}));
  return new Set([...outside, ...binaries].filter((name) => manifestOf(name) !== undefined));
}
