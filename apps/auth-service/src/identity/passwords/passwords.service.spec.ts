import { pbkdf2 } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { getPriority } from 'node:os';
import { promisify } from 'node:util';
import { testsThatNeed } from '@platform/testing';
import { lowerWorkerPriority } from './passwords.service';

const { it: itOnLinux } = testsThatNeed(
  'the priority of threads',
  process.platform === 'linux' ? null : 'only Linux tells it',
);

describe('lowerWorkerPriority', () => {
  itOnLinux("lowers the priority of the pool's threads only", async () => {
    // Starts libuv's thread pool.
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
