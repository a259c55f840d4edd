import { SYSTEM_CLOCK, sleep } from '@platform/time';

/** Time and chance as the client sees them; replaceable, so that a test can measure waits without waiting. */
export interface PassingTime {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `durationMs`; rejects with the signal's reason as soon as it aborts. */
  sleep(durationMs: number, signal?: AbortSignal): Promise<void>;
  /** A number from 0 up to but not including 1. */
  random(): number;
}

/** The machine's. */
export const REAL_TIME: PassingTime = {
  now: () => SYSTEM_CLOCK.now().getTime(),
  sleep,
  random: Math.random,
};
