import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { claimRange, findFreePorts } from './ports.ts';
import { findProcessStart } from './processes.ts';

/**
 * Finds ports in a separate process, which lives until the test ends it. Every process begins at the same
 * place of its range.
 */
function startSeeker(count: number) {
  const script = `Math.random = () => 0.5;
    const { findFreePorts } = await import(${JSON.stringify(join(__dirname, 'ports.ts'))});
    console.log(JSON.stringify(await findFreePorts(${count})));
    process.stdin.resume();`;
  const args = ['--input-type=module', '--eval', script];
  const child = spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  const ports = new Promise<number[]>((resolve, reject) => {
    createInterface(child.stdout).once('line', (line) => resolve(JSON.parse(line) as number[]));
    child.once('exit', (code) => reject(new Error(`ended with ${code}`)));
  });
  return { ports, end: () => child.stdin.end() };
}

describe('findFreePorts', () => {
  it('returns no port to two processes', async () => {
    const seekers = Array.from({ length: 4 }, () => startSeeker(10));
    try {
      const ports = (await Promise.all(seekers.map((seeker) => seeker.ports))).flat();
      expect(new Set(ports).size).toBe(40);
    } finally {
      for (const seeker of seekers) seeker.end();
    }
  });

  it('returns no port to two callers in one process', async () => {
    const ports = (await Promise.all([findFreePorts(5), findFreePorts(5)])).flat();
    expect(new Set([...ports, ...(await findFreePorts(5))]).size).toBe(15);
  });
});

describe('a range of ports', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'ports-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  const held = (number: number, pid: number, start: string): void => {
    const record = { supervisor: { pid, start }, processes: [], removeFolder: null };
    writeFileSync(join(folder, `${number}.json`), JSON.stringify(record));
  };

  it('stays the same for a process', async () => {
    expect(await claimRange(folder)).toBe(await claimRange(folder));
  });

  it('is taken over from a process that has ended, even if another process has its pid', async () => {
    const own = process.pid % 100;
    held(own, process.pid, 'another life');
    expect(await claimRange(folder)).toBe(own);
  });

  it('is not taken from a running process', async () => {
    const own = process.pid % 100;
    held(own, process.ppid, findProcessStart(process.ppid)!);
    expect(await claimRange(folder)).toBe((own + 1) % 100);
  });
});
