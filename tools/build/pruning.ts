/** What packages from npm bring for people and compilers: declarations, sources, documentation, builds for browsers. */
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
 * @param path below `node_modules`, with slashes
 */
export function isNeedless(path: string): boolean {
  return NEEDLESS_FOLDERS.has(path) || (NEEDLESS_FILE.test(path) && !/(?:^|\/)licen[cs]e/i.test(path));
}
