/** Columns of `task.triggers` as a `Trigger`. */
export const TRIGGER_COLUMNS = `
  facility_id::float8 AS "facilityId", trigger_name AS "triggerName", trigger_group AS "triggerGroup",
  job_name AS "jobName", schedule, time_zone AS "timeZone", state, next_fire_at AS "nextFireAt",
  previous_fire_at AS "previousFireAt"`;
