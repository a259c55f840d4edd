import { readFileSync, readdirSync } from 'node:fs';
import { setPriority } from 'node:os';

const TASKS = '/proc/self/task';
/** What libuv calls the threads of its pool. */
const WORKER = 'libuv-worker';
/** A tenth of the weight of a thread with the usual priority, when both want the processor. See sched(7). */
const NICENESS = 10;

/**
 * Lets the event loop go before the threads of its pool, which hash: where hashes take every processor, whoever does not log in would wait
 * for them. The threads exist once the pool was used. On Linux only; elsewhere nothing happens.
 * @returns how many threads there were
 */
export function lowerWorkerPriority(): number {
  if (process.platform !== 'linux') return 0;
  const workers = readdirSync(TASKS).filter((thread) => nameOf(thread) === WORKER);
  // Linux takes a thread's number where POSIX wants a process'. Anybody may lower a priority.
  for (const thread of workers) setPriority(Number(thread), NICENESS);
  return workers.length;
}

function nameOf(thread: string): string {
  return readFileSync(`${TASKS}/${thread}/comm`, 'utf8').trim();
}
