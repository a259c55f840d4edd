import { setTimeout as delay } from 'node:timers/promises';

/** Work at an ordinary pace, in contrast to as much as goes. */
export interface Pace {
  readonly seconds: number;
  readonly perSecond: number;
  /** Pieces of work that may go on at once. */
  readonly workers: number;
}

/** Begins so many pieces of work a second at random instants, as callers do that know nothing of each other.
 *  A worker that is late
 *  catches up. Gives how many were done. @param work gets the number of the worker */
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

/** Exponentially distributed. */
function randomPauseMs(meanMs: number): number {
  return -Math.log(1 - Math.random()) * meanMs;
}
