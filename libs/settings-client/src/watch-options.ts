import { requireNumber } from './options';
import type { WatchedChange } from './platform-setting';

export interface WatchOptions {
  /**
   * Watches only this subsystem; every read of another one sends a request. Without this option all
   * subsystems are watched, which needs the persona InternalPartner. Customers and Owners must name a
   * subsystem.
   */
  readonly subsystemName?: string;
  /** Ends the watch. */
  readonly signal?: AbortSignal;
  /**
   * Time in seconds for which the service waits for a change before it responds that there is none, 1 to 30.
   * Default 10.
   */
  readonly waitSeconds?: number;
  /**
   * Time for which memory is served while the service cannot confirm it, in milliseconds. Default 600,000.
   */
  readonly maxAgeMs?: number;
  /**
   * Maximum number of settings in memory. The one first read longest ago is evicted first. Default 10,000.
   */
  readonly maxEntries?: number;
  /**
   * Called for each change, also of settings that were never read. A read inside the callback returns the new
   * value. It must not throw.
   */
  readonly onChange?: (change: WatchedChange) => void;
  /**
   * Called with null when the watch starts or resumes, and with the error when it is interrupted. It must not
   * throw.
   */
  readonly onState?: (interruption: unknown) => void;
}

/**
 * Returns the options with defaults filled in.
 * @throws {TypeError} for an invalid number
 */
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
