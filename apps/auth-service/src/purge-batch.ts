/** Maximum rows that one purge statement deletes, so that it ends well within the statement timeout. */
export const PURGE_BATCH = 10_000;

/**
 * SQL: deletes one batch of the rows of `table` that match `condition`, oldest first, and returns their
 * number as `removed`. All replicas may run it at the same time: rows locked by another replica are skipped.
 * ORDER BY with LIMIT makes the planner use the index on `order` whatever its statistics are.
 * @param order the indexed column that `condition` bounds
 */
export function purgeBatch(table: string, condition: string, order: string): string {
  return `
  WITH removed AS (
    DELETE FROM auth.${table} WHERE ctid = ANY (ARRAY(
      SELECT ctid FROM auth.${table} WHERE ${condition} ORDER BY ${order} LIMIT ${String(PURGE_BATCH)} FOR UPDATE SKIP LOCKED))
    RETURNING 1
  )
  SELECT count(*)::int AS removed FROM removed`;
}
