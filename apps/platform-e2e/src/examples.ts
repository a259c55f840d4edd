import { execFile, execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Variables } from '#platform/state-folder.ts';

/**
 * Returns the targets of a Markdown page's relative links without a title, including those of images and in
 * fenced blocks.
 */
export function relativeLinks(markdown: string): string[] {
  const targets = [...markdown.matchAll(/\]\(([^)\s]+)\)/g)].map(([, target]) => target ?? '');
  return targets.filter((target) => !/^([a-z]+:|#)/.test(target));
}

/** Returns the anchors of a page's headings, as GitHub generates them. */
export function anchors(markdown: string): string[] {
  return [...markdown.matchAll(/^#{1,6} (.+)$/gm)].map(([, heading]) =>
    (heading ?? '')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-'),
  );
}

/** Returns the npm scripts that a page tells its readers to run. */
export function npmScripts(markdown: string): string[] {
  const commands = [...markdown.matchAll(/\bnpm (?:run (?:--silent )?([\w:-]+)|(start|test|stop)\b)/g)];
  return [...new Set(commands.map(([, script, short]) => script ?? short ?? ''))];
}

/**
 * Returns the metrics that the table in docs/operations.md describes for a service, including those of all
 * services.
 */
export function describedMetrics(operations: string, service: string): string[] {
  const rows = operations.split('\n').filter((line) => /^\| `/.test(line));
  return rows.flatMap((row) => {
    const [, names = '', of = ''] = row.split('|').map((cell) => cell.trim());
    return of === 'all' || of === service
      ? [...names.matchAll(/`(\w+)`/g)].map(([, name]) => name as string)
      : [];
  });
}

/** A fenced block of a page that readers are meant to run. */
export interface Example {
  /** The heading above the block. */
  heading: string;
  language: 'sh' | 'ts';
  code: string;
}

/** Returns the examples of a Markdown page in page order. Blocks in other languages are not examples. */
export function readExamples(markdown: string): Example[] {
  const examples: Example[] = [];
  let heading = '';
  for (const [, title, language, code] of markdown.matchAll(/^#{1,6} (.+)$|^```(\w*)\n([\s\S]*?)^```$/gm)) {
    if (title !== undefined) heading = title;
    else if ((language === 'sh' || language === 'ts') && code !== undefined)
      examples.push({ heading, language, code });
  }
  return examples;
}

/** Path prefix of the GET request by which an example reports its end; the example's number follows. */
export const END_OF_EXAMPLE = '/end-of-example/';

/**
 * Joins all shell examples into one script, as if pasted into one shell. The script requests
 * `END_OF_EXAMPLE_URL` after each example. Uses -u, because a variable that no example has set is a mistake
 * in the page.
 */
export function shellScript(examples: readonly Example[]): string {
  return joined(examples, 'set -u\n', (end) => `curl -sS -o /dev/null "$END_OF_EXAMPLE_URL"${end}\n`);
}

/**
 * Joins all TypeScript examples into one module. The module requests `END_OF_EXAMPLE_URL` after each example,
 * and ends with `epilogue`.
 */
export function typeScriptModule(examples: readonly Example[], epilogue: string): string {
  return (
    joined(examples, '', (end) => `await fetch(process.env['END_OF_EXAMPLE_URL'] + '${end}');\n`) + epilogue
  );
}

function joined(examples: readonly Example[], head: string, mark: (end: string) => string): string {
  return head + examples.map(({ code }, index) => `${code}\n${mark(String(index))}`).join('\n');
}

const WORKSPACE = join(__dirname, '../../..');
const TSC = join(WORKSPACE, 'node_modules/typescript/bin/tsc');
/** Libraries that examples import. */
const LIBRARIES = ['access-tokens', 'auth-client', 'settings-client'] as const;
const RUN_TIMEOUT_MS = 150_000;

/** The result of a program. */
export interface Ended {
  exitCode: number;
  stdout: string;
  stderr: string;
}

/** Returns true if the command `name` is installed. */
export function hasCommand(name: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${name}`], { stdio: 'ignore' });
    return true;
  } catch (error) {
    if (error instanceof Error && 'status' in error) return false;
    throw error;
  }
}

/** A folder in which a reader's program can import the workspace's libraries by name. */
export class ExampleFolder {
  private readonly modules: string[] = [];

  private constructor(private readonly path: string) {}

  /** Creates the folder inside the workspace, so that the libraries' imports resolve in its node_modules. */
  static async create(): Promise<ExampleFolder> {
    await mkdir(join(WORKSPACE, 'dist'), { recursive: true });
    const folder = new ExampleFolder(await mkdtemp(join(WORKSPACE, 'dist/examples-')));
    await folder.write('package.json', JSON.stringify({ private: true, type: 'module' }));
    const scope = join(folder.path, 'node_modules/@platform');
    const options = [
      '--bundle',
      '--platform=node',
      '--format=cjs',
      '--packages=external',
      '--log-level=warning',
    ];
    await promisify(execFile)(
      join(WORKSPACE, 'node_modules/.bin/esbuild'),
      [
        ...LIBRARIES.map((library) => `libs/${library}/src/index.ts`),
        'libs/settings-client/src/openfeature.ts',
        '--tsconfig=tsconfig.base.json',
        '--outbase=libs',
        `--outdir=${scope}`,
        ...options,
      ],
      { cwd: WORKSPACE },
    );
    for (const library of LIBRARIES)
      await writeFile(
        join(scope, library, 'package.json'),
        JSON.stringify({ exports: { '.': './src/index.js', './*': './src/*.js' } }),
      );
    return folder;
  }

  /** Runs a TypeScript module with Node, which strips the types. */
  async runModule(name: string, text: string, env: Variables): Promise<Ended> {
    this.modules.push(name);
    return this.run(process.execPath, [await this.write(name, text)], env);
  }

  /** Runs a script with `sh`. */
  async runShell(name: string, text: string, env: Variables): Promise<Ended> {
    return this.run('sh', [await this.write(name, text)], env);
  }

  /** Type-checks the modules that were run. */
  async typeCheck(): Promise<Ended> {
    const base = join(WORKSPACE, 'tsconfig.base.json');
    // Unused locals are allowed, because a reader's program would go on to use them.
    const compilerOptions = { noEmit: true, noUnusedLocals: false, types: ['node'], rootDir: WORKSPACE };
    // passport-jwt ships no types.
    const files = [...this.modules, join(WORKSPACE, 'libs/access-tokens/src/passport-jwt.d.ts')];
    await this.write('tsconfig.json', JSON.stringify({ extends: base, compilerOptions, files }));
    return this.run(process.execPath, [TSC, '-p', 'tsconfig.json'], {});
  }

  remove(): Promise<void> {
    return rm(this.path, { recursive: true, force: true });
  }

  private async write(name: string, text: string): Promise<string> {
    await writeFile(join(this.path, name), text);
    return name;
  }

  private run(command: string, args: readonly string[], env: Variables): Promise<Ended> {
    const options = { cwd: this.path, env: { HOME: this.path, ...env }, timeout: RUN_TIMEOUT_MS };
    return new Promise((resolve) => {
      execFile(command, args, options, (error, stdout, stderr) =>
        resolve({ exitCode: exitCodeOf(error), stdout, stderr }),
      );
    });
  }
}

/** Returns the exit code, or -1 if the program did not end by itself or could not be started. */
function exitCodeOf(error: Error | null): number {
  if (error === null) return 0;
  return 'code' in error && typeof error.code === 'number' ? error.code : -1;
}
