import type { DataSource } from 'typeorm';

/** How much waits in the message store. */
export interface OutboxBacklog {
  readonly waiting: number;
  readonly parked: number;
  /** Age of the oldest event that is not parked; 0 when none waits. */
  readonly oldestAgeSeconds: number;
}

// Counting a long backlog exactly is not worth reading it all.
const COUNT_LIMIT = 10_000;

const SELECT = `
  SELECT (SELECT count(*)::int FROM (SELECT 1 FROM task.outbox WHERE parked_at IS NULL LIMIT $1) AS counted) AS waiting,
    (SELECT count(*)::int FROM task.outbox WHERE parked_at IS NOT NULL) AS parked,
    coalesce((SELECT extract(epoch FROM now() - min(created_at))::float8 FROM (
      SELECT (SELECT created_at FROM task.outbox AS event WHERE event.lane = number AND parked_at IS NULL
        ORDER BY sequence LIMIT 1) AS created_at
      FROM generate_series(0, 15) AS number) AS heads), 0) AS "oldestAgeSeconds"`;

/** Reads the backlog; `waiting` is counted up to 10,000. */
export async function readOutboxBacklog(dataSource: DataSource): Promise<OutboxBacklog> {
  const rows: OutboxBacklog[] = await dataSource.query(SELECT, [COUNT_LIMIT]);
  return rows[0] ?? { waiting: 0, parked: 0, oldestAgeSeconds: 0 };
}
