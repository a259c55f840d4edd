import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runProcess } from './run-process';
import type { RunningProcess } from './run-process';

const WORKSPACE = join(__dirname, '../../..');
const TSC = join(WORKSPACE, 'node_modules/typescript/bin/tsc');

/** Initial packages of an empty project. */
interface ProjectContents {
  /** Libraries of the workspace to install in their published form, by folder. */
  packages: readonly string[];
  /** npm packages to link from the workspace's node_modules. */
  linked?: readonly string[];
  /** Packages to install from the registry, with versions, e.g. `@types/node@26`. */
  fetched?: readonly string[];
}

/** A folder outside the workspace with installed packages of it, like a user's project. */
export class EmptyProject {
  private constructor(
    private readonly folder: string,
    /** True if the project installed its own `@types/node`. */
    private readonly hasOwnTypes: boolean,
  ) {}

  /**
   * Builds the libraries for publication, packs them and installs the archives. Works offline unless
   * `fetched` is given.
   */
  static async withPackages({ packages, linked = [], fetched = [] }: ProjectContents): Promise<EmptyProject> {
    const hasOwnTypes = fetched.some((name) => name.startsWith('@types/node@'));
    const project = new EmptyProject(await mkdtemp(join(tmpdir(), 'empty-project-')), hasOwnTypes);
    const archives = await Promise.all(packages.map((root) => pack(root, project.folder)));
    const links = linked.map((name) => [name, `file:${join(WORKSPACE, 'node_modules', name)}`]);
    const manifest = { private: true, dependencies: Object.fromEntries(links) as object };
    await project.write('package.json', JSON.stringify(manifest));
    // Without scripts: linked packages are already built, and npm would run their development scripts.
    const quietly = [
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      ...(fetched.length === 0 ? ['--offline'] : []),
    ];
    await run(project.folder, 'npm', 'install', ...quietly, ...archives, ...fetched);
    return project;
  }

  write(file: string, text: string): Promise<void> {
    return writeFile(join(this.folder, file), text);
  }

  /**
   * Runs the program `file` and returns its output.
   * @throws {Error} if it ends with another code than 0
   */
  run(file: string, ...args: string[]): Promise<string> {
    return run(this.folder, process.execPath, file, ...args);
  }

  /** Starts the program `file`. */
  start(file: string, env: Readonly<Record<string, string>>): Promise<RunningProcess> {
    return runProcess({ entry: join(this.folder, file), env });
  }

  /**
   * Type-checks files strictly, like a Node project.
   * @throws {Error} with the compiler's output
   */
  async typeCheck(...files: string[]): Promise<void> {
    await this.compile(['--noEmit', '--target', 'es2022'], files);
  }

  /** Type-checks files and writes the JavaScript next to them. Does not check the types of npm packages. */
  async build(...files: string[]): Promise<void> {
    const decorators = ['--experimentalDecorators', '--emitDecoratorMetadata', '--esModuleInterop'];
    await this.compile(['--target', 'es2023', '--skipLibCheck', ...decorators], files);
  }

  private async compile(options: readonly string[], files: readonly string[]): Promise<void> {
    for (const name of this.hasOwnTypes ? [] : ['@types/node', 'undici-types'])
      await cp(join(WORKSPACE, 'node_modules', name), join(this.folder, 'node_modules', name), {
        recursive: true,
      });
    await this.run(TSC, '--strict', '--module', 'node16', '--types', 'node', ...options, ...files);
  }

  async installedPackages(): Promise<string[]> {
    return [...(await this.installedVersions()).keys()];
  }

  /** Returns the installed versions by path. */
  async installedVersions(): Promise<Map<string, string>> {
    const lock = JSON.parse(await readFile(join(this.folder, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { version?: string }>;
    };
    // The empty path is the project itself.
    const installed = Object.entries(lock.packages).filter(([path]) => path !== '');
    return new Map(installed.map(([path, { version = '' }]) => [path, version]));
  }

  remove(): Promise<void> {
    return rm(this.folder, { recursive: true, force: true });
  }
}

/** Packs a library and returns the path of its archive. */
async function pack(projectRoot: string, folder: string): Promise<string> {
  // Not built in dist/, because tests of other projects build the same libraries concurrently.
  const built = join(folder, 'built', projectRoot);
  await run(WORKSPACE, process.execPath, 'tools/build/library-package.ts', projectRoot, built);
  return join(folder, (await run(built, 'npm', 'pack', '--pack-destination', folder, '--silent')).trim());
}

async function run(cwd: string, command: string, ...args: string[]): Promise<string> {
  try {
    return (await promisify(execFile)(command, args, { cwd, env: environmentWithoutColours() })).stdout;
  } catch (error) {
    // The compiler reports errors on its standard output.
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout ?? ''}${stderr ?? ''}`, { cause: error });
  }
}

/** Removes FORCE_COLOR, which Nx sets for its tasks, so that outputs can be compared. */
function environmentWithoutColours(): NodeJS.ProcessEnv {
  const { FORCE_COLOR: _forced, ...environment } = process.env;
  return environment;
}
