import { setTimeout as delay } from 'node:timers/promises';

interface Patience {
  readonly timeoutMs?: number;
  readonly intervalMs?: number;
}

/**
 * Repeats `probe` until it neither throws nor rejects, and gives its value.
 * @throws the probe's last error once `timeoutMs` has passed
 */
export async function eventually<T>(
  probe: () => Promise<T> | T,
  { timeoutMs = 10_000, intervalMs = 50 }: Patience = {},
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
 * Repeats `probe` until it is true; false once `timeoutMs` has passed. What the probe throws ends the wait.
 */
export async function becomesTrue(
  probe: () => Promise<boolean> | boolean,
  { timeoutMs = 10_000, intervalMs = 50 }: Patience = {},
): Promise<boolean> {
  const deadline = performance.now() + timeoutMs;
  while (!(await probe())) {
    if (performance.now() >= deadline) return false;
    await delay(intervalMs);
  }
  return true;
}

/** A probe: GET answers 2xx. */
export function answersOk(url: string, headers: Record<string, string> = {}): () => Promise<boolean> {
  return async () => {
    try {
      const response = await fetch(url, { headers, signal: AbortSignal.timeout(2_000) });
      await response.arrayBuffer();
      return response.ok;
    } catch (error) {
      // Nobody listens yet (TypeError of fetch), or it is too slow yet. By name: under Jest they come from
      // another realm.
      const { name } = error as { name?: unknown };
      if (name === 'TypeError' || name === 'TimeoutError') return false;
      throw error;
    }
  };
}
