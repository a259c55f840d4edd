import type { EntityManager } from 'typeorm';

/** A due instant of a schedule. */
export interface Occurrence {
  readonly scheduleId: string;
  readonly dueAt: Date;
}

const INSERT = `
  WITH inserted AS (
    INSERT INTO task.instances (schedule_id, facility_id, name, due_at)
    SELECT schedule.schedule_id, schedule.facility_id, schedule.name, occurrence.due_at
    FROM unnest($1::uuid[], $2::timestamptz[]) AS occurrence (schedule_id, due_at)
    JOIN task.schedules AS schedule USING (schedule_id)
    ON CONFLICT (schedule_id, due_at) DO NOTHING
    RETURNING 1)
  SELECT count(*)::int AS count FROM inserted`;

/** Creates the instances that do not exist yet, and counts them: an instance is unique per schedule and due instant. */
export async function insertInstances(
  manager: EntityManager,
  occurrences: readonly Occurrence[],
): Promise<number> {
  const rows = await manager.query<{ count: number }[]>(INSERT, [
    occurrences.map(({ scheduleId }) => scheduleId),
    occurrences.map(({ dueAt }) => dueAt),
  ]);
  return rows[0]?.count ?? 0;
}
