import { requireNumber } from './options';
import type { WatchedChange } from './platform-setting';

/** How a watch behaves. */
export interface WatchOptions {
  /**
   * Watch this subsystem only; others are read from the service each time. Without it all are watched, which
   * needs the persona InternalPartner. Customers and Owners name a subsystem.
   */
  readonly subsystemName?: string;
  /** Ends the watch. */
  readonly signal?: AbortSignal;
  /** How long the service waits for a change before it confirms that there is none, 1 to 30. Default 10. */
  readonly waitSeconds?: number;
  /** How long memory responds while the service cannot confirm it, in milliseconds. Default 600,000. */
  readonly maxAgeMs?: number;
  /** Settings kept; the one that was read first goes first. Default 10,000. */
  readonly maxEntries?: number;
  /**
   * Called for each change, also of settings that were never read. A read in it gives the new value. It must
   * not throw.
   */
  readonly onChange?: (change: WatchedChange) => void;
  /**
   * Called with null when the watch begins or resumes, and with the error when it is interrupted. It must not
   * throw.
   */
  readonly onState?: (interruption: unknown) => void;
}

/** The options with what they are unless given. @throws {TypeError} for a number that is of no use */
export function watchOptions(options: WatchOptions): ReturnType<typeof withDefaults> {
  const complete = withDefaults(options);
  requireNumber('waitSeconds', complete.waitSeconds, { min: 1, max: 30, isInteger: true });
  requireNumber('maxAgeMs', complete.maxAgeMs, { min: 0 });
  requireNumber('maxEntries', complete.maxEntries, { min: 1, isInteger: true });
  return complete;
}

function withDefaults(options: WatchOptions) {
  return {
    ...options,
    waitSeconds: options.waitSeconds ?? 10,
    maxAgeMs: options.maxAgeMs ?? 600_000,
    maxEntries: options.maxEntries ?? 10_000,
  };
}
