export { ManualClock, SYSTEM_CLOCK, fixedClock } from './clock';
export type { Clock } from './clock';
export {
  DAY_MS,
  HOUR_MS,
  MINUTE_MS,
  SECOND_MS,
  exponentialRetryDelayMs,
  fullJitterDelayMs,
  sleep,
  waitUntil,
  withTimeout,
} from './durations';
