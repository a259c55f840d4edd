import { setTimeout as delay } from 'node:timers/promises';

/** An ordinary pace of work, as opposed to saturation. */
export interface Pace {
  readonly seconds: number;
  readonly perSecond: number;
  /** Maximum concurrency. */
  readonly workers: number;
}

/**
 * Does work at a given rate, at random instants like independent callers. A late worker catches up. Returns
 * the number of pieces of work.
 * @param work receives the number of the worker
 */
export async function atPace(
  { seconds, perSecond, workers }: Pace,
  work: (worker: number) => Promise<unknown>,
): Promise<number> {
  const endsAtMs = performance.now() + seconds * 1_000;
  const meanPauseMs = (workers / perSecond) * 1_000;
  let done = 0;
  const loop = async (worker: number): Promise<void> => {
    let dueAtMs = performance.now() + randomPauseMs(meanPauseMs);
    while (dueAtMs < endsAtMs) {
      await delay(Math.max(0, dueAtMs - performance.now()));
      await work(worker);
      done += 1;
      dueAtMs += randomPauseMs(meanPauseMs);
    }
  };
  await Promise.all(Array.from({ length: workers }, (_none, worker) => loop(worker)));
  return done;
}

/** A random pause with an exponential distribution. */
function randomPauseMs(meanMs: number): number {
  return -Math.log(1 - Math.random()) * meanMs;
}
