import { setTimeout as delay } from 'node:timers/promises';

interface WaitOptions {
  readonly timeoutMs?: number;
  readonly intervalMs?: number;
}

/**
 * Repeats `probe` until it neither throws nor rejects, and returns its value.
 * @throws the probe's last error once `timeoutMs` has passed
 */
export async function eventually<T>(
  probe: () => Promise<T> | T,
  { timeoutMs = 10_000, intervalMs = 50 }: WaitOptions = {},
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await probe();
    } catch (error) {
      if (performance.now() >= deadline) throw error;
    }
    await delay(intervalMs);
  }
}

/**
 * Repeats `probe` until it returns true. Returns false once `timeoutMs` has passed. An error of the probe
 * ends the wait.
 */
export async function becomesTrue(
  probe: () => Promise<boolean> | boolean,
  { timeoutMs = 10_000, intervalMs = 50 }: WaitOptions = {},
): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (!(await probe())) {
    if (performance.now() >= deadline) return false;
    await delay(intervalMs);
  }
  return true;
}

/** Returns a probe that is true if GET responds 2xx. */
export function respondsOk(url: string, headers: Record<string, string> = {}): () => Promise<boolean> {
  return async () => {
    try {
      const response = await fetch(url, { headers, signal: AbortSignal.timeout(2_000) });
      await response.arrayBuffer();
      return response.ok;
    } catch (error) {
      // Not listening yet (a TypeError of fetch), or still too slow. Compared by name: under Jest these
      // errors come from another realm.
      const { name } = error as { name?: unknown };
      if (name === 'TypeError' || name === 'TimeoutError') return false;
      throw error;
    }
  };
}
