import { CLOCK_STEP_SECONDS } from '@platform/database';

/**
 * Maximum seconds by which the newest issue may be ahead of the database's clock. If it is further ahead, it
 * is ignored: the clock was wrong when those tokens were issued, and a revocation with that date would lock
 * its user out until then.
 */
const BELIEVED_SECONDS = CLOCK_STEP_SECONDS;

/**
 * SQL: records the current second as one in which tokens are issued. Use it as a materialised CTE that the
 * statement reads. In each second one request writes the sequence; the others only read it.
 */
export const NOTE_ISSUE = `
  SELECT setval('auth.newest_issue', present.second)
  FROM auth.newest_issue AS newest, (SELECT extract(epoch FROM date_trunc('second', now()))::bigint AS second) AS present
  WHERE present.second > newest.last_value OR newest.last_value > present.second + ${String(BELIEVED_SECONDS)}`;

/**
 * SQL: one row with `at`, the date of a revocation that is set now, in whole milliseconds. The date covers
 * every token issued before, even if the database's clock has been set back since. OFFSET 0 makes PostgreSQL
 * evaluate it once, so that every reference gets the same date.
 */
export const REVOCATION_INSTANT = `
  SELECT date_trunc('milliseconds', greatest(now(), (
    SELECT to_timestamp(last_value) FROM auth.newest_issue
    WHERE last_value <= extract(epoch FROM now()) + ${String(BELIEVED_SECONDS)}))) AS at OFFSET 0`;
