import type { DataSource } from 'typeorm';

const SELECT = `
  SELECT (extract(epoch FROM min(next_fire_at) - now()) * 1000)::float8 AS "delayMs"
  FROM task.triggers WHERE state = 'WAITING'`;

/** Milliseconds, by the database's clock, until the next trigger is due; negative when one is overdue, null without any. */
export async function findNextDueDelayMs(dataSource: DataSource): Promise<number | null> {
  const rows = await dataSource.query<{ delayMs: number | null }[]>(SELECT);
  return rows[0]?.delayMs ?? null;
}
