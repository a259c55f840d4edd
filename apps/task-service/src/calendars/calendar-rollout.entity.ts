import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';
import { BIGINT, INSTANT } from '../fields/fields';
import { Calendar } from './calendar.entity';

/**
 * A changed calendar with facilities that have not been asked to regenerate yet. One row per calendar: a
 * later change restarts it.
 */
@Entity('calendar_rollouts')
export class CalendarRollout {
  @ForeignKey(() => Calendar, { name: 'calendar_rollouts_calendar_id_fkey', onDelete: 'CASCADE' })
  @PrimaryColumn({
    name: 'calendar_id',
    type: 'uuid',
    primaryKeyConstraintName: 'calendar_rollouts_pkey',
  })
  readonly calendarId!: string;

  /** The current pass has requested generation for all facilities up to this one. */
  @Column({ name: 'after_facility_id', ...BIGINT })
  readonly afterFacilityId!: number;

  /**
   * Next transaction id to be assigned, recorded by the first step after the change, and again if the row was
   * restored to a server whose ids are lower. Transactions with lower ids may have read the old dates.
   */
  @Column({ name: 'next_transaction_id', ...BIGINT, nullable: true })
  readonly nextTransactionId!: number | null;

  /**
   * Whether this is the last pass over the facilities. It begins once all transactions below
   * `nextTransactionId` have ended, and the row is deleted after it.
   */
  @Column({ name: 'is_last_pass', type: 'boolean', default: false })
  readonly isLastPass!: boolean;

  /** When the calendar was changed. */
  @Column({ name: 'changed_at', ...INSTANT })
  readonly changedAt!: Date;

  /** When the last step ran. The rollout with the oldest value runs next. */
  @Column({ name: 'stepped_at', ...INSTANT, default: () => 'now()' })
  readonly steppedAt!: Date;
}
