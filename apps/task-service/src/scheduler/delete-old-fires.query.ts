import type { DataSource } from 'typeorm';

// A fire is what keeps its occurrence from firing again, so the one that a trigger stands on stays whatever its age: a trigger
// paused or in error for longer than the retention must not fire that occurrence a second time.
// Found by index and deleted where they were found; joined, the planner may rather read the whole table for each batch. Fires are never
// updated, so a row stays where it is.
const DELETE = `
  WITH deleted AS (
    DELETE FROM task.trigger_fires WHERE ctid = ANY (ARRAY(
      SELECT fire.ctid FROM task.trigger_fires AS fire
      WHERE fire.fired_at < now() - $1 * interval '1 day' AND NOT EXISTS (
        SELECT 1 FROM task.triggers AS trigger
        WHERE trigger.facility_id = fire.facility_id AND trigger.next_fire_at <= fire.scheduled_at)
      ORDER BY fire.fired_at LIMIT $2))
    RETURNING 1
  ) SELECT count(*)::int AS count FROM deleted`;

/** Forgets at most `limit` fires older than `days`, oldest first; gives how many. Of replicas that do so at
 *  the same time one deletes and the others find nothing left. */
export async function deleteOldFires(dataSource: DataSource, days: number, limit: number): Promise<number> {
  const rows = await dataSource.query<{ count: number }[]>(DELETE, [days, limit]);
  return rows[0]?.count ?? 0;
}
