import { Column, Entity, PrimaryColumn } from 'typeorm';
import { BIGINT, INSTANT } from '../fields/fields';

/** Local dates, of holidays say, that the schedules which name it leave out, each in its own time zone. */
@Entity('calendars')
export class Calendar {
  @PrimaryColumn({ name: 'calendar_id', type: 'uuid', primaryKeyConstraintName: 'calendars_pkey' })
  readonly calendarId!: string;

  @Column({ type: 'text' })
  readonly name!: string;

  /** ISO 8601 dates, ascending, each once. */
  @Column({ name: 'excluded_dates', type: 'text', array: true })
  readonly excludedDates!: string[];

  /** Counts the changes of the dates: schedules note by which one they were generated. */
  @Column({ ...BIGINT, default: 1 })
  readonly revision!: number;

  @Column({ name: 'changed_at', ...INSTANT, default: () => 'now()' })
  readonly changedAt!: Date;
}

/** Names the state of a calendar. A deleted one that is made again has another. */
export function calendarRevision({ changedAt, revision }: Calendar): string {
  return `${changedAt.getTime().toString(36)}-${String(revision)}`;
}
