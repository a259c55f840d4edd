import { pbkdf2 } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { getPriority } from 'node:os';
import { promisify } from 'node:util';
import { lowerWorkerPriority } from './passwords.service';

const onLinux = process.platform === 'linux' ? it : it.skip;

describe('lowerWorkerPriority', () => {
  onLinux("lowers the priority of the pool's threads, and of no other", async () => {
    // Starts the pool.
    await promisify(pbkdf2)('password', 'salt', 1, 16, 'sha256');
    const before = getPriority(process.pid);
    const workers = lowerWorkerPriority();
    const priorities = readdirSync('/proc/self/task').map((thread) => ({
      isWorker: readFileSync(`/proc/self/task/${thread}/comm`, 'utf8').trim() === 'libuv-worker',
      priority: getPriority(Number(thread)),
    }));
    expect(workers).toBeGreaterThan(0);
    expect(priorities.filter(({ isWorker }) => isWorker).map(({ priority }) => priority)).toEqual(
      Array.from({ length: workers }, () => 10),
    );
    expect(getPriority(process.pid)).toBe(before);
  });
});
