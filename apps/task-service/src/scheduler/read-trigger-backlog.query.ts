import type { DataSource } from 'typeorm';

/** How the scheduler's triggers stand. */
export interface TriggerBacklog {
  /** How long the trigger has been due that waits longest, by the database's clock; 0 when none is due. */
  readonly lagSeconds: number;
  /** Triggers that cannot be evaluated, counted up to 10,000. */
  readonly failed: number;
}

const COUNT_LIMIT = 10_000;

const SELECT = `
  SELECT greatest(coalesce((SELECT extract(epoch FROM now() - min(next_fire_at)) FROM task.triggers
      WHERE state = 'WAITING'), 0), 0)::float8 AS "lagSeconds",
    (SELECT count(*)::int FROM (SELECT 1 FROM task.triggers WHERE state = 'ERROR' LIMIT $1) AS counted) AS failed`;

/** Reads it with one statement. */
export async function readTriggerBacklog(dataSource: DataSource): Promise<TriggerBacklog> {
  const rows = await dataSource.query<TriggerBacklog[]>(SELECT, [COUNT_LIMIT]);
  return rows[0] ?? { lagSeconds: 0, failed: 0 };
}
