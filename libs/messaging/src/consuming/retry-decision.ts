/** Wait of a message that only fails because the database is away, when its policy has no wait of its own. Long enough not to
 *  hammer a database that is coming up. */
export const OUTAGE_DELAY_MS = 15_000;

export interface FailedDelivery {
  /** Waits in the broker that this message has behind it. */
  readonly attempts: number;
  readonly retryDelaysMs: readonly number[];
  readonly isOutage: boolean;
}

/** What happens to a message that could not be processed. `retry` counts against the policy, `postpone` does not. */
export type RetryDecision =
  | { readonly action: 'retry'; readonly delayMs: number; readonly attempts: number }
  | { readonly action: 'postpone'; readonly delayMs: number }
  | { readonly action: 'park' };

/** Takes the policy's next wait; when it has none left the message goes to the error queue. A queue without waits of its own does
 *  not give messages up for an outage: nothing is wrong with them, so they are tried again until the database is back.
 *  Source: task messaging spec, Limits ("applies to all exceptions" where a policy is given). */
export function decideRetry({ attempts, retryDelaysMs, isOutage }: FailedDelivery): RetryDecision {
  const delayMs = retryDelaysMs[attempts];
  if (delayMs !== undefined) return { action: 'retry', delayMs, attempts: attempts + 1 };
  if (isOutage && retryDelaysMs.length === 0) return { action: 'postpone', delayMs: OUTAGE_DELAY_MS };
  return { action: 'park' };
}

/** Every wait that a queue with this policy may need, each once, shortest first. */
export function delaysOf(retryDelaysMs: readonly number[]): number[] {
  const delays = retryDelaysMs.length === 0 ? [OUTAGE_DELAY_MS] : retryDelaysMs;
  return [...new Set(delays)].sort((a, b) => a - b);
}
