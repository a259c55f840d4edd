import { execFile } from 'node:child_process';
import { existsSync, globSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { anchors, npmScripts, relativeLinks } from '../src/examples';

const WORKSPACE = join(__dirname, '../../..');
const PAGES = globSync(['*.md', 'docs/**/*.md', 'libs/*/README.md', 'docker/*.md', 'k8s/**/*.md'], {
  cwd: WORKSPACE,
});

const read = (path: string): string => readFileSync(join(WORKSPACE, path), 'utf8');

describe('the documentation', () => {
  it.each(PAGES)('%s has no dead links, and names only existing npm scripts', (page) => {
    const markdown = read(page);
    const dead = relativeLinks(markdown).filter((link) => {
      const [path = '', anchor] = link.split('#');
      const target = join(dirname(page), path);
      if (!existsSync(join(WORKSPACE, target))) return true;
      return anchor !== undefined && !anchors(read(target)).includes(anchor);
    });
    expect(dead).toEqual([]);
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    expect(Object.keys(scripts)).toEqual(expect.arrayContaining(npmScripts(markdown)));
  });

  it('lists every page of docs/ in docs/README.md', () => {
    const listed = relativeLinks(read('docs/README.md'));
    const pages = readdirSync(join(WORKSPACE, 'docs'), { withFileTypes: true }).map((entry) =>
      entry.isDirectory() ? `${entry.name}/README.md` : entry.name,
    );
    const existing = pages.filter(
      (page) => page !== 'README.md' && existsSync(join(WORKSPACE, 'docs', page)),
    );
    expect(listed).toEqual(expect.arrayContaining(existing));
  });

  it.each([
    ['auth:admin', ['applications', 'keys', 'revocations']],
    ['settings:admin', ['export', 'import', 'compare', 'restore']],
    ['task:admin', ['outbox', 'errors']],
  ])('prints help for %s', async (script, words) => {
    const { stdout } = await run('npm', 'run', '--silent', script, '--', '--help');
    for (const word of words) expect(stdout).toContain(word);
  });

  it('lists exactly the flags of npm start', async () => {
    const flags = [...read('docs/development.md').matchAll(/^\| `(--[\w-]+)/gm)].map(([, flag]) => flag);
    // Not through npm, which would first install packages if they differ from the lock file.
    const { stdout } = await run(process.execPath, 'tools/start/main.ts', '--help');
    expect([...stdout.matchAll(/^ +(?:-h, )?(--[\w-]+)/gm)].map(([, flag]) => flag).sort()).toEqual(
      flags.sort(),
    );
  });

  const run = (command: string, ...args: string[]) => promisify(execFile)(command, args, { cwd: WORKSPACE });
});
