/**
 * Rows that one statement removes at most: it ends well within the time limit of statements, however many
 * have expired.
 */
export const PURGE_BATCH = 10_000;

/**
 * SQL: removes a batch of the rows that can no longer decide anything, the oldest first, and says how many
 * (`removed`). Safe on all replicas at once: what another is removing is passed over. The limit has the index
 * read whatever the statistics say.
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
