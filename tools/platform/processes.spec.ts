import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { findStat } from './proc.ts';
import { findProcessStart, isRunning } from './processes.ts';
import { eventually } from './waiting.ts';

describe('process identity', () => {
  it('treats a zombie as ended', async () => {
    // The shell becomes `sleep`, which never waits for the child that the shell started: the child stays a
    // zombie.
    const parent = spawn('sh', ['-c', 'sleep 0 & echo $!; exec sleep 60'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    try {
      const [line] = (await once(parent.stdout, 'data')) as [Buffer];
      const zombie = Number(line);
      await eventually(() => expect(findStat(zombie)?.state).toBe('Z'));
      expect(findProcessStart(zombie)).toBeNull();
    } finally {
      parent.kill('SIGKILL');
    }
  });

  it('tells this process from another one with its pid', () => {
    const start = findProcessStart(process.pid) ?? '';
    expect(isRunning({ pid: process.pid, start })).toBe(true);
    expect(isRunning({ pid: process.pid, start: `${start}0` })).toBe(false);
  });
});
