import { REFRESH_GRACE_SECONDS } from './refresh-state';

/**
 * Minimum age of the newest snapshot before another is recorded. Less than the job's interval of 1 s, because
 * the job may run a little early.
 */
const LEAST_AGE = `interval '900 milliseconds'`;

/** Distance between two snapshots above which the commits between them cannot be dated. */
const GAP = `interval '5 seconds'`;

/** SQL: the grace window, in which a rotated refresh token may be presented again. */
export const WINDOW = `interval '${String(REFRESH_GRACE_SECONDS)} seconds'`;

/**
 * SQL: records which transactions have ended, unless another replica did so within the last 900 ms. Deletes
 * the snapshots older than the grace window, except the newest of these. Also deletes snapshots dated more
 * than a minute ahead. `synchronous_commit` is off, so that the record itself does not wait for a standby or
 * the disk while other commits do.
 */
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
 * SQL: the instant from which other transactions could see the rotation of refresh token `t`; null while that
 * is unknown. `rotated_at` is the start of the rotating transaction, and its commit may be much later. Each
 * recorded snapshot tells whether the rotation was visible (committed) at its time. In this order:
 * - `rotated_at`, if the rotation is within the window, was made by release 1.0.0 (which recorded no
 *   transaction id), or no snapshot precedes its commit;
 * - the first snapshot after the commit, if more than 5 s after the last one before the commit; null while
 *   there is none;
 * - the last snapshot before the commit, if the transaction had an id by then (or `rotated_at` if later);
 * - `rotated_at`.
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
