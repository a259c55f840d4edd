import { SYSTEM_CLOCK, sleep } from '@platform/time';

/**
 * Repeats `probe` until it neither throws nor rejects, and gives its value.
 * @throws the probe's last error once `timeoutMs` has passed
 */
export async function eventually<T>(
  probe: () => Promise<T> | T,
  { timeoutMs = 10_000, intervalMs = 50 }: { timeoutMs?: number; intervalMs?: number } = {},
): Promise<T> {
  const deadline = SYSTEM_CLOCK.monotonicMs() + timeoutMs;
  for (;;) {
    try {
      return await probe();
    } catch (error) {
      if (SYSTEM_CLOCK.monotonicMs() >= deadline) throw error;
    }
    await sleep(intervalMs);
  }
}
