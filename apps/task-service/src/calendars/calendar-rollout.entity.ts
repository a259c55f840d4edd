import { Column, Entity, ForeignKey, PrimaryColumn } from 'typeorm';
import { BIGINT, INSTANT } from '../fields/fields';
import { Calendar } from './calendar.entity';

/**
 * A changed calendar some of whose facilities are still to generate anew. One per calendar: a later change
 * begins again.
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

  /** This pass has requested generation for all facilities up to this one. */
  @Column({ name: 'after_facility_id', ...BIGINT })
  readonly afterFacilityId!: number;

  /** Id of the next transaction, noted by the first step, and again where the row was restored to a server
   *  whose ids are lower. Transactions with lower ids may have read the dates as they were. */
  @Column({ name: 'next_transaction_id', ...BIGINT, nullable: true })
  readonly nextTransactionId!: number | null;

  /** This pass over the facilities begins once those transactions have ended. Nothing is left after it. */
  @Column({ name: 'is_last_pass', type: 'boolean', default: false })
  readonly isLastPass!: boolean;

  /** The instant of the change. */
  @Column({ name: 'changed_at', ...INSTANT })
  readonly changedAt!: Date;

  /** The one that waited longest has its next step first. */
  @Column({ name: 'stepped_at', ...INSTANT, default: () => 'now()' })
  readonly steppedAt!: Date;
}
