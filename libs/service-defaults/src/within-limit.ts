import { sleep } from '@platform/time';

/** The outcome of `work`, which goes on by itself where it takes longer than `limitMs`. @throws {Error} with `message` then */
export async function withinLimit<T>(
  work: () => T | Promise<T>,
  limitMs: number,
  message = `no answer within ${String(limitMs)} ms`,
): Promise<T> {
  const done = new AbortController();
  const late = sleep(limitMs, done.signal).then(() => Promise.reject(new Error(message)));
  // Aborted below, when nobody waits for it any more.
  late.catch(() => undefined);
  try {
    return await Promise.race([work(), late]);
  } finally {
    done.abort();
  }
}
