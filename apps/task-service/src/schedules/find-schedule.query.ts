import type { DataSource } from 'typeorm';
import type { Schedule } from './schedule';
import { SCHEDULE_COLUMNS, scheduleOf } from './schedule-columns';
import type { ScheduleRow } from './schedule-columns';

const SELECT = `SELECT ${SCHEDULE_COLUMNS} FROM task.schedules WHERE schedule_id = $1`;

export async function findSchedule(dataSource: DataSource, scheduleId: string): Promise<Schedule | null> {
  const rows: ScheduleRow[] = await dataSource.query(SELECT, [scheduleId]);
  return rows[0] ? scheduleOf(rows[0]) : null;
}
