import type { TaskInstance } from './instance';
import type { InstanceStatus } from './instance-status';

/** Columns of `task.instances` as `instanceOf` reads them. */
export const INSTANCE_COLUMNS = `
  task_instance_id AS "taskInstanceId", schedule_id AS "scheduleId", facility_id::float8 AS "facilityId", name,
  due_at AS "dueAt", status, completed_at AS "completedAt", completed_by_person_id::float8 AS "personId",
  completed_by_name AS "personName", completed_by_persona AS persona, notes`;

/** A row read with INSTANCE_COLUMNS. */
export interface InstanceRow {
  taskInstanceId: string;
  scheduleId: string;
  facilityId: number;
  name: string;
  dueAt: Date;
  status: InstanceStatus;
  completedAt: Date | null;
  personId: number | null;
  personName: string | null;
  persona: number | null;
  notes: string | null;
}

/** The instance of a row. */
export function instanceOf({ personId, personName, persona, ...row }: InstanceRow): TaskInstance {
  return { ...row, completedBy: persona === null ? null : { personId, name: personName, persona } };
}
