import { setTimeout as delay } from 'node:timers/promises';
import { FriendlyError } from './friendly-error.ts';
import { lastLines } from './log-files.ts';
import { endedEarly, type SupervisedProcess } from './supervisor.ts';

/**
 * Waits until `probe` succeeds for `child`.
 * @throws {FriendlyError} with the end of its log when the child ends first or `timeoutMs` is over.
 */
export async function waitUntilReady(
  child: SupervisedProcess,
  probe: () => Promise<boolean>,
  timeoutMs: number,
  intervalMs = 50,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await probe())) {
    if (child.hasEnded()) throw endedEarly(child, await child.ended);
    if (performance.now() > deadline) {
      throw new FriendlyError(
        `${child.name} was not ready within ${timeoutMs / 1000} s. Its last log lines (${child.logFile}):\n${lastLines(child.logFile, 20)}`,
      );
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
      // Nobody listens yet (TypeError from fetch) or it is too slow yet (TimeoutError).
      if (error instanceof TypeError || (error instanceof Error && error.name === 'TimeoutError'))
        return false;
      throw error;
    }
  };
}
