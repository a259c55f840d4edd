import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { runProcess } from './run-process';
import type { RunningProcess } from './run-process';

const WORKSPACE = join(__dirname, '../../..');
const TSC = join(WORKSPACE, 'node_modules/typescript/bin/tsc');

/** What a folder of its own starts with. */
interface ProjectContents {
  /** Libraries of the workspace to install as published, by their folders. */
  packages: readonly string[];
  /** Packages from npm beside them: the workspace's own, linked. */
  linked?: readonly string[];
  /** Packages to install from the registry, with their versions: `@types/node@26`. */
  fetched?: readonly string[];
}

/**
 * A folder outside the workspace into which published packages of it were installed, as a user of them would.
 */
export class EmptyProject {
  private constructor(
    private readonly folder: string,
    /** Whether it has types of Node of its own. */
    private readonly hasOwnTypes: boolean,
  ) {}

  /**
   * Builds libraries for publication, packs them and installs the archives; without a registry unless
   * packages are fetched.
   */
  static async withPackages({ packages, linked = [], fetched = [] }: ProjectContents): Promise<EmptyProject> {
    const hasOwnTypes = fetched.some((name) => name.startsWith('@types/node@'));
    const project = new EmptyProject(await mkdtemp(join(tmpdir(), 'empty-project-')), hasOwnTypes);
    const archives = await Promise.all(packages.map((root) => pack(root, project.folder)));
    const links = linked.map((name) => [name, `file:${join(WORKSPACE, 'node_modules', name)}`]);
    const manifest = { private: true, dependencies: Object.fromEntries(links) as object };
    await project.write('package.json', JSON.stringify(manifest));
    // Linked packages are built already; npm would run their scripts for whoever works on them.
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

  /** What the program `file` prints. @throws {Error} unless it ends with code 0 */
  run(file: string, ...args: string[]): Promise<string> {
    return run(this.folder, process.execPath, file, ...args);
  }

  /** Starts the program `file`. */
  start(file: string, env: Readonly<Record<string, string>>): Promise<RunningProcess> {
    return runProcess({ entry: join(this.folder, file), env });
  }

  /** Type-checks strictly, as a Node project does. @throws {Error} with what the compiler says */
  async typeCheck(...files: string[]): Promise<void> {
    await this.compile(['--noEmit', '--target', 'es2022'], files);
  }

  /**
   * Type-checks, and writes the JavaScript beside the files. Types of packages from npm are taken as they
   * are.
   */
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

  /** By path. */
  async installedVersions(): Promise<Map<string, string>> {
    const lock = JSON.parse(await readFile(join(this.folder, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, { version?: string }>;
    };
    // '' is the project itself.
    const installed = Object.entries(lock.packages).filter(([path]) => path !== '');
    return new Map(installed.map(([path, { version = '' }]) => [path, version]));
  }

  remove(): Promise<void> {
    return rm(this.folder, { recursive: true, force: true });
  }
}

/** The path of a library's archive. */
async function pack(projectRoot: string, folder: string): Promise<string> {
  // Not into dist/: tests of other projects build the same libraries at the same time.
  const built = join(folder, 'built', projectRoot);
  await run(WORKSPACE, process.execPath, 'tools/build/library-package.ts', projectRoot, built);
  return join(folder, (await run(built, 'npm', 'pack', '--pack-destination', folder, '--silent')).trim());
}

async function run(cwd: string, command: string, ...args: string[]): Promise<string> {
  try {
    return (await promisify(execFile)(command, args, { cwd, env: withoutColours() })).stdout;
  } catch (error) {
    // The compiler says what is wrong on its standard output.
    const { stdout, stderr } = error as { stdout?: string; stderr?: string };
    throw new Error(`${command} ${args.join(' ')} failed:\n${stdout ?? ''}${stderr ?? ''}`, { cause: error });
  }
}

/** Nx asks the programs of its tasks for colours, which their output must not have here. */
function withoutColours(): NodeJS.ProcessEnv {
  const { FORCE_COLOR: _forced, ...environment } = process.env;
  return environment;
}
