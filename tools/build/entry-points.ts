import { basename, join } from 'node:path';

/** The part of a `project.json` that bundling reads. */
export interface ProjectFile {
  readonly name: string;
  readonly metadata?: {
    readonly entryPoints?: readonly string[];
    /** Whether packages from npm are bundled as well, for a quick start; otherwise they are read from `node_modules`. */
    readonly packages?: 'bundled';
  };
}

/**
 * The bundles of a project: output name (without extension) → source file. Without `metadata.entryPoints` it has one.
 * @throws {Error} when two entry points would write the same bundle.
 */
export function bundlesOf(
  projectRoot: string,
  project: ProjectFile,
  onlyEntry = 'src/main.ts',
): Record<string, string> {
  const bundles: Record<string, string> = {};
  for (const entry of project.metadata?.entryPoints ?? [onlyEntry]) {
    const name = basename(entry).replace(/\.ts$/, '');
    if (bundles[name] !== undefined) throw new Error(`${project.name}: two entry points are called ${name}`);
    bundles[name] = `./${join(projectRoot, entry)}`; // without the dot esbuild would take it for a package
  }
  return bundles;
}

/** `@platform/x` → source file, from the `paths` of the workspace's TypeScript configuration. */
export function libraryPaths(
  paths: Readonly<Record<string, readonly string[]>>,
): ReadonlyMap<string, string> {
  return new Map(
    Object.entries(paths).flatMap(([name, [first]]) => (first === undefined ? [] : [[name, first] as const])),
  );
}
