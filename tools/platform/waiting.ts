import { setTimeout as delay } from 'node:timers/promises';

/**
 * Repeats `probe` until it neither throws nor rejects, and gives its value.
 * @throws the probe's last error once `timeoutMs` has passed
 */
export async function eventually<T>(
  probe: () => Promise<T> | T,
  { timeoutMs = 10_000, intervalMs = 50 }: { timeoutMs?: number; intervalMs?: number } = {},
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

/** A probe: GET answers 2xx. */
export function answersOk(url: string, headers: Record<string, string> = {}): () => Promise<boolean> {
  return async () => {
    try {
      const response = await fetch(url, { headers, signal: AbortSignal.timeout(2_000) });
      await response.arrayBuffer();
      return response.ok;
    } catch (error) {
      // Nobody listens yet (TypeError of fetch), or it is too slow yet. By name: under Jest they come from another realm.
      const { name } = error as { name?: unknown };
      if (name === 'TypeError' || name === 'TimeoutError') return false;
      throw error;
    }
  };
}
