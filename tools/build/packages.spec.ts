import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { build } from 'esbuild';
import {
  PACKAGES_BUNDLE,
  ownCode,
  packageOf,
  packagesBundles,
  importedSpecifiers,
  starters,
} from './packages.ts';

describe('packageOf', () => {
  it.each([
    ['pg', 'pg'],
    ['pg/lib/utils', 'pg'],
    ['@nestjs/core', '@nestjs/core'],
    ['@nestjs/core/router/x', '@nestjs/core'],
  ])('of %s is %s', (specifier, name) => expect(packageOf(specifier)).toBe(name));
});

describe('a project with bundled packages', () => {
  let folder: string;
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'bundles-'));
    const exports = { require: './index.cjs', import: './index.mjs' };
    write('node_modules/both/package.json', JSON.stringify({ name: 'both', version: '1.0.0', exports }));
    write('node_modules/both/index.cjs', 'exports.Kind = class Kind {};');
    write('node_modules/both/index.mjs', 'export class Kind {}');
    write('node_modules/user/package.json', JSON.stringify({ name: 'user', version: '1.0.0' }));
    write('node_modules/user/index.js', "exports.make = () => new (require('both').Kind)();");
    write('node_modules/loud/package.json', JSON.stringify({ name: 'loud', version: '1.0.0' }));
    write('node_modules/loud/index.js', "console.log('loud is loaded');");
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  async function bundle(programs: Readonly<Record<string, string>>): Promise<void> {
    for (const [name, text] of Object.entries(programs)) write(`${name}.js`, text);
    const common = {
      absWorkingDir: folder,
      bundle: true,
      platform: 'node',
      format: 'cjs',
      logLevel: 'error',
    } as const;
    const names = Object.keys(programs);
    const own = ownCode(Object.fromEntries(names.map((name) => [name, `./${name}.js`])));
    const { metafile } = await build({
      ...common,
      ...own,
      outdir: 'out',
      metafile: true,
      sourcemap: 'linked',
    });
    await build({ ...common, ...starters(names), outdir: 'out' });
    const packages = importedSpecifiers(Object.keys(metafile.inputs));
    const bundles = new Map([[basename(PACKAGES_BUNDLE, '.js'), packages]]);
    await build({ ...common, ...packagesBundles(bundles, folder), outdir: 'out' });
    rmSync(join(folder, 'node_modules'), { recursive: true });
  }

  const start = (name: string, env: NodeJS.ProcessEnv = {}): string =>
    execFileSync(process.execPath, [join(folder, 'out', `${name}.js`)], { encoding: 'utf8', env }).trim();

  async function run(programs: Readonly<Record<string, string>>): Promise<string[]> {
    await bundle(programs);
    return Object.keys(programs).map((name) => start(name));
  }

  it('runs without node_modules, several programs on one bundle of packages', async () => {
    const program = "import { make } from 'user'; console.log(make().constructor.name);";
    expect(await run({ one: program, two: program })).toEqual(['Kind', 'Kind']);
  });

  it('has one copy of a package that is both ES module and CommonJS, however it is imported', async () => {
    const program = `import { Kind } from 'both'; import { make } from 'user';
      void import('both').then((module) => console.log(String(make() instanceof Kind) + " " + String(module.Kind === Kind)));`;
    expect(await run({ main: program })).toEqual(['true true']);
  });

  it('loads a dynamically imported package only when its import runs', async () => {
    expect(await run({ main: "console.log('started'); if (process.argv[5]) import('loud');" })).toEqual([
      'started',
    ]);
  });

  it('lets a package that is not installed fail where it is required', async () => {
    const program = "try { require('not-installed'); } catch (error) { console.log(error.code); }";
    expect(await run({ main: program })).toEqual(['MODULE_NOT_FOUND']);
  });

  it('says in one line which Node it needs when an older one runs it', async () => {
    await bundle({ admin: "import 'user'; console.log('runs');" });
    // Simulates an older Node, which lacks this function and fails at its first use.
    const old = join(folder, 'old-node.cjs');
    writeFileSync(
      old,
      `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.19.5' } });
       Object.defineProperty(process, 'version', { value: 'v20.19.5' });
       delete require('node:module').getCompileCacheDir;`,
    );
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ['--require', old, join(folder, 'out', 'admin.js')],
      { encoding: 'utf8' },
    );
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
    expect(stderr).toMatch(/^admin\.js needs Node 24 or later, and this is v20\.19\.5: .+\n$/);
    expect(start('admin')).toBe('runs');
  });

  it('shows lines of the source in stack traces', async () => {
    const program = "import 'user';\n\nconst fail = () => new Error('broken').stack;\nconsole.log(fail());";
    const [stack] = await run({ main: program });
    expect(stack!.split('\n').slice(0, 2)).toEqual([
      'Error: broken',
      `    at fail (${join(folder, 'main.js')}:3:20)`,
    ]);
  });

  describe('with a folder for compiled code', () => {
    const OWN = 'code/main.js';
    const startWithCache = (): string => start('main', { NODE_COMPILE_CACHE: join(folder, 'cache') });
    /** File names and inodes of the saved code: own code, and packages. */
    const saved = (): string[] => {
      const files = readdirSync(join(folder, 'cache'), { recursive: true, encoding: 'utf8' });
      const ours = files.filter((file) => basename(file).startsWith('main.js-')).sort();
      return ours.map((file) => `${file} ${statSync(join(folder, 'cache', file)).ino}`);
    };
    const edit = (file: string, from: string, to: string): void => {
      const path = join(folder, 'out', file);
      writeFileSync(path, readFileSync(path, 'utf8').replace(from, to));
    };

    beforeEach(async () => {
      await bundle({ main: "import { make } from 'user'; console.log(make().constructor.name + ' 1');" });
      const packages = join(folder, 'out', PACKAGES_BUNDLE);
      writeFileSync(packages, `// Made from abc;\n${readFileSync(packages, 'utf8')}`);
      expect(startWithCache()).toBe('Kind 1');
    });

    it('saves the code that ran for the next start', () => {
      const first = saved();
      expect(first).toHaveLength(2);
      expect(startWithCache()).toBe('Kind 1');
      expect(saved()).toEqual(first);
    });

    it.each([
      ['own code of the same length', OWN, ' 1', ' 2', 'Kind 2'],
      ['packages with other inputs', PACKAGES_BUNDLE, 'from abc;\n', 'from abd;\n', 'Kind 1'],
      ['packages whose saved code V8 rejects', PACKAGES_BUNDLE, 'class Kind', 'class Kinds', 'Kinds 1'],
    ])('saves the code again for %s', (_, file, from, to, output) => {
      const first = saved();
      edit(file, from, to);
      expect(startWithCache()).toBe(output);
      const unchanged = saved().filter((each) => first.includes(each));
      expect([saved().length, unchanged.length]).toEqual([2, 1]);
      expect(startWithCache()).toBe(output);
    });
  });
});
