import type { Schedule, ScheduleStatus } from './schedule';

/** Columns of `task.schedules` as `scheduleOf` reads them. Numbers are cast, because the driver gives bigint as text. */
export const SCHEDULE_COLUMNS = `
  schedule_id AS "scheduleId", facility_id::float8 AS "facilityId", name, description, schedule, time_zone AS "timeZone",
  start_date AS "startDate", status, created_at AS "createdAt", created_by_person_id::float8 AS "personId",
  created_by_name AS "personName", created_by_persona AS persona`;

/** A row read with SCHEDULE_COLUMNS. */
export interface ScheduleRow {
  scheduleId: string;
  facilityId: number;
  name: string;
  description: string | null;
  schedule: string;
  timeZone: string;
  startDate: string | null;
  status: ScheduleStatus;
  createdAt: Date;
  personId: number | null;
  personName: string | null;
  persona: number;
}

/** The schedule of a row. */
export function scheduleOf({ personId, personName, persona, ...row }: ScheduleRow): Schedule {
  return { ...row, createdBy: { personId, name: personName, persona } };
}
