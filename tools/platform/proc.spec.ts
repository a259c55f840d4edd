import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  childrenOf,
  countOpenFiles,
  cpuMsOf,
  findStat,
  isStopped,
  listPids,
  networkOf,
  parseStat,
  readProc,
  residentBytes,
} from './proc.ts';
import { eventually } from './waiting.ts';

describe('/proc', () => {
  it('describes a process whose name contains spaces and parentheses', () => {
    const line = '42 (a) b (c)) R 7 42 42 0 -1 4194304 1 2 3 4 250 50 6 7 20 0 1 0 4711 1 1';
    expect(parseStat(line)).toEqual({
      pid: 42,
      parent: 7,
      name: 'a) b (c)',
      state: 'R',
      startTicks: '4711',
      cpuSeconds: 3,
      endedChildrenCpuSeconds: 0.13,
    });
  });

  it('describes this process', () => {
    expect(findStat(process.pid)).toMatchObject({ pid: process.pid, parent: process.ppid, state: 'R' });
    expect(listPids()).toContain(process.pid);
    expect(residentBytes(process.pid)).toBeGreaterThan(10_000_000);
    expect(countOpenFiles(process.pid)).toBeGreaterThan(2);
    expect(networkOf(process.pid)).toMatch(/^net:\[\d+\]$/);
    expect(readProc(`${process.pid}/cmdline`)).toContain('node');
  });

  it('sums the processor time of all threads', () => {
    const [before, usedBefore] = [cpuMsOf(process.pid), process.cpuUsage()];
    while (process.cpuUsage(usedBefore).user < 30_000);
    expect(cpuMsOf(process.pid) - before).toBeGreaterThan(20);
  });

  it('finds a child, whether it is stopped, and that it has ended', async () => {
    const child = spawn('sleep', ['60'], { stdio: 'ignore' });
    const pid = child.pid!;
    expect(childrenOf(process.pid)).toContain(pid);
    expect(isStopped(pid)).toBe(false);
    child.kill('SIGSTOP');
    await eventually(() => expect(isStopped(pid)).toBe(true));
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(findStat(pid)).toBeNull();
    expect(residentBytes(pid)).toBeNull();
    expect(networkOf(pid)).toBeNull();
  });
});
