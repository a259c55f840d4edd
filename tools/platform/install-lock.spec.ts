import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const MODULE = join(__dirname, 'install-lock.mjs');

describe('the installation lock', () => {
  let folder: string;
  let file: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'install-lock-'));
    file = join(folder, 'lock');
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Runs `work` in a separate process that holds the lock. */
  const holder = (work: string): Promise<number | null> => {
    const script = `import { lock } from ${JSON.stringify(MODULE)};
      import { appendFileSync } from 'node:fs';
      const release = lock(${JSON.stringify(file)}, () => {});
      const note = (text) => appendFileSync(${JSON.stringify(join(folder, 'notes'))}, text);
      ${work}`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: 'inherit' });
    return new Promise((resolve) => child.once('exit', resolve));
  };
  const notes = (): string => readFileSync(join(folder, 'notes'), 'utf8');
  const inTwoSteps = `note('('); Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50); note(')'); release();`;

  it('is held by one process at a time', async () => {
    expect(await Promise.all([1, 2, 3, 4].map(() => holder(inTwoSteps)))).toEqual([0, 0, 0, 0]);
    expect(notes()).toBe('()()()()');
    expect(existsSync(file)).toBe(false);
  });

  it('is free again when its holder exits or is killed', async () => {
    await holder('process.exit(1);');
    expect(existsSync(file)).toBe(false);
    await holder(`process.kill(process.pid, 'SIGKILL');`);
    expect(existsSync(file)).toBe(true);
    expect(await Promise.all([holder(inTwoSteps), holder(inTwoSteps)])).toEqual([0, 0]);
    expect(notes()).toBe('()()');
  });

  it('is not held by a later process with the pid of its holder', async () => {
    writeFileSync(file, `${process.pid} 1 another life`);
    expect(await holder(inTwoSteps)).toBe(0);
  });
});
