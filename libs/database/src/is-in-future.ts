/**
 * Maximum backward step of the database's clock, in seconds, that counts as normal: a promoted standby lags
 * by less.
 */
export const CLOCK_STEP_SECONDS = 60;

/**
 * Returns SQL that is true if `instant` is in the future, given that it was set at most `longestSeconds`
 * ahead. An instant further ahead was set by a wrong clock and counts as past; otherwise it would last for as
 * long as that clock was ahead. Null if `instant` is null.
 */
export const isInFuture = (instant: string, longestSeconds: number): string =>
  `(${instant} > now() AND ${instant} <= now() + interval '${String(longestSeconds + CLOCK_STEP_SECONDS)} seconds')`;
