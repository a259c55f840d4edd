import { CLOCK_STEP_SECONDS } from '@platform/database';

/**
 * How far the newest issue may be ahead of the database's clock and still count. Further ahead, the clock was
 * wrong when the tokens were issued, and revocations dated like them would keep their users out for as long.
 */
const BELIEVED_SECONDS = CLOCK_STEP_SECONDS;

/**
 * SQL: notes the present second as one in which tokens are issued, for use as a materialised CTE that is
 * read. Once a second one request writes it; the others only look.
 */
export const NOTE_ISSUE = `
  SELECT setval('auth.newest_issue', present.second)
  FROM auth.newest_issue AS newest, (SELECT extract(epoch FROM date_trunc('second', now()))::bigint AS second) AS present
  WHERE present.second > newest.last_value OR newest.last_value > present.second + ${String(BELIEVED_SECONDS)}`;

/**
 * SQL: a row whose `at` is the date of a revocation that is set now, in whole milliseconds. It covers every
 * token issued before, also when the database's clock has gone back since. OFFSET 0: one date for all who
 * read it.
 */
export const REVOCATION_INSTANT = `
  SELECT date_trunc('milliseconds', greatest(now(), (
    SELECT to_timestamp(last_value) FROM auth.newest_issue
    WHERE last_value <= extract(epoch FROM now()) + ${String(BELIEVED_SECONDS)}))) AS at OFFSET 0`;
