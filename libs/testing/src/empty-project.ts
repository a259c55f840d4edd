import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const WORKSPACE = join(__dirname, '../../..');

/** A folder outside the workspace into which one of its published packages was installed, as a user of it would. */
export class EmptyProject {
  private constructor(private readonly folder: string) {}

  /** Builds the library at `projectRoot` for publication, packs it and installs the archive, without a registry. */
  static async withPackage(projectRoot: string): Promise<EmptyProject> {
    const project = new EmptyProject(await mkdtemp(join(tmpdir(), 'empty-project-')));
    await run(WORKSPACE, process.execPath, 'tools/build/client-package.ts', projectRoot);
    const built = join(WORKSPACE, 'dist', projectRoot);
    const archive = await run(built, 'npm', 'pack', '--pack-destination', project.folder, '--silent');
    await project.write('package.json', '{"private":true}');
    const quietly = ['--offline', '--no-audit', '--no-fund'];
    await run(project.folder, 'npm', 'install', ...quietly, join(project.folder, archive.trim()));
    return project;
  }

  write(file: string, text: string): Promise<void> {
    return writeFile(join(this.folder, file), text);
  }

  /** What the program `file` prints. @throws {Error} unless it ends with code 0 */
  run(file: string, ...args: string[]): Promise<string> {
    return run(this.folder, process.execPath, file, ...args);
  }

  /** Type-checks strictly, as a Node project does. @throws {Error} with what the compiler says */
  async typeCheck(...files: string[]): Promise<void> {
    for (const name of ['@types/node', 'undici-types'])
      await cp(join(WORKSPACE, 'node_modules', name), join(this.folder, 'node_modules', name), {
        recursive: true,
      });
    const options = ['--noEmit', '--strict', '--target', 'es2022', '--module', 'node16', '--types', 'node'];
    await this.run(join(WORKSPACE, 'node_modules/typescript/bin/tsc'), ...options, ...files);
  }

  /** Paths of everything that the package brought along, itself included. */
  async installedPackages(): Promise<string[]> {
    const lock = JSON.parse(await readFile(join(this.folder, 'package-lock.json'), 'utf8')) as {
      packages: Record<string, unknown>;
    };
    // '' is the project itself.
    return Object.keys(lock.packages).filter((path) => path !== '');
  }

  remove(): Promise<void> {
    return rm(this.folder, { recursive: true, force: true });
  }
}

async function run(cwd: string, command: string, ...args: string[]): Promise<string> {
  return (await promisify(execFile)(command, args, { cwd })).stdout;
}
