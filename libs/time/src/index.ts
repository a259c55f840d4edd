export { ManualClock, SYSTEM_CLOCK, fixedClock } from './clock';
export type { Clock } from './clock';
export { exponentialRetryDelayMs, fullJitterDelayMs } from './backoff';
export { DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, sleep, waitUntil, withTimeout } from './durations';
