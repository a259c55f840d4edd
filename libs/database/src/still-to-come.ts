/**
 * How far the database's clock may go back, in seconds, without anything being taken for wrong: a standby
 * that takes over is behind by less.
 */
export const CLOCK_STEP_SECONDS = 60;

/**
 * SQL: whether an instant is still to come that was set at most `longestSeconds` ahead. One further ahead was
 * set by a clock that was wrong, and is over: it would last as long as that clock was ahead. Null if the
 * instant is.
 */
export const isStillToCome = (instant: string, longestSeconds: number): string =>
  `(${instant} > now() AND ${instant} <= now() + interval '${String(longestSeconds + CLOCK_STEP_SECONDS)} seconds')`;
