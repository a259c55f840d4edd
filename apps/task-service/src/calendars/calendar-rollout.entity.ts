import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';
import { BIGINT, INSTANT } from '../fields/fields';
import { Calendar } from './calendar.entity';

/** A changed calendar some of whose facilities are still to generate anew. One per calendar: a later change begins again. */
@Entity('calendar_rollouts')
export class CalendarRollout {
  @ForeignKey(() => Calendar, { name: 'calendar_rollouts_calendar_id_fkey', onDelete: 'CASCADE' })
  @PrimaryColumn({
    name: 'calendar_id',
    type: 'uuid',
    primaryKeyConstraintName: 'calendar_rollouts_pkey',
  })
  readonly calendarId!: string;

  /** Generation has been requested for all facilities up to this one. */
  @Column({ name: 'after_facility_id', ...BIGINT })
  readonly afterFacilityId!: number;

  /** The instant of the change. */
  @Column({ name: 'changed_at', ...INSTANT })
  readonly changedAt!: Date;

  /** The one that waited longest has its next step first. */
  @Column({ name: 'stepped_at', ...INSTANT, default: () => 'now()' })
  readonly steppedAt!: Date;
}
