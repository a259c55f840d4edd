import { REFRESH_GRACE_SECONDS } from './refresh-state';

/**
 * How old the newest snapshot is at least when another is recorded. Below the interval of the job, which may
 * come a little early.
 */
const LEAST_AGE = `interval '900 milliseconds'`;

/** Snapshots further apart than this leave a gap: within it nobody knows when a commit became visible. */
const GAP = `interval '5 seconds'`;

/** SQL: how long a rotated refresh token may be presented again. */
export const WINDOW = `interval '${String(REFRESH_GRACE_SECONDS)} seconds'`;

/** Records which transactions have ended by now, unless another replica just did, and removes what is no
 *  longer needed: all but the newest snapshot that is older than the window. `synchronous_commit` is off:
 *  a commit that waits for a standby or the disk must not hold up the record of its wait. */
export const RECORD_SNAPSHOT = `
  WITH setting AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true)
  ), removed AS (
    DELETE FROM auth.recorded_snapshot USING setting WHERE recorded_snapshot.ctid = ANY (ARRAY(
      SELECT ctid FROM auth.recorded_snapshot
      WHERE recorded_at > now() + interval '1 minute'
        OR recorded_at < (SELECT max(recorded_at) FROM auth.recorded_snapshot WHERE recorded_at <= now() - ${WINDOW})
      FOR UPDATE SKIP LOCKED))
  )
  INSERT INTO auth.recorded_snapshot (recorded_at, snapshot)
  SELECT clock_timestamp(), pg_current_snapshot()::text FROM setting
  WHERE NOT EXISTS (SELECT FROM auth.recorded_snapshot WHERE recorded_at BETWEEN now() - ${LEAST_AGE} AND now())
  ON CONFLICT DO NOTHING`;

/**
 * SQL: from when on other transactions could see the rotation of refresh token `t`; null while nobody can
 * tell. A rotation is dated when its transaction begins, and its commit may be much later: it was still under
 * way in the last snapshot that does not show it, or it became visible in a gap between two snapshots. A date
 * from before the transaction had an id is taken as it is. So is that of a rotation by release 1.0.0, and
 * everything where no snapshot was recorded before the rotation was visible.
 */
export const ROTATION_SEEN_AT = `
  CASE WHEN t.rotated_in IS NULL OR t.rotated_at >= now() - ${WINDOW} THEN t.rotated_at ELSE (
    SELECT CASE
      WHEN unseen.at IS NULL THEN t.rotated_at
      WHEN coalesce(seen.at, now()) - unseen.at > ${GAP} THEN seen.at
      WHEN unseen.is_begun THEN greatest(t.rotated_at, unseen.at)
      ELSE t.rotated_at END
    FROM (
      SELECT min(recorded_at) AS at FROM auth.recorded_snapshot
      WHERE recorded_at <= now() AND pg_visible_in_snapshot(t.rotated_in::text::xid8, snapshot::pg_snapshot)
    ) AS seen
    LEFT JOIN LATERAL (
      SELECT recorded_at AS at, t.rotated_in::text::xid8 < pg_snapshot_xmax(snapshot::pg_snapshot) AS is_begun
      FROM auth.recorded_snapshot
      WHERE recorded_at <= now() AND (seen.at IS NULL OR recorded_at < seen.at)
      ORDER BY recorded_at DESC LIMIT 1
    ) AS unseen ON true) END`;
