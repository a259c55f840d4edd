import { Column, Entity, PrimaryColumn } from 'typeorm';
import { BIGINT, INSTANT } from '../fields/fields';

/**
 * Since when business units hold a facility active or do not. While none does, it also remembers the trigger
 * that the facility had.
 */
@Entity('facility_activity')
export class FacilityActivity {
  @PrimaryColumn({ name: 'facility_id', ...BIGINT, primaryKeyConstraintName: 'facility_activity_pkey' })
  readonly facilityId!: number;

  /** When its last business unit let go of it; null while it has a trigger again. */
  @Column({ name: 'inactive_since', ...INSTANT, nullable: true })
  readonly inactiveSince!: Date | null;

  /** When it was activated last: nothing due earlier is generated any more. */
  @Column({ name: 'active_since', ...INSTANT, nullable: true })
  readonly activeSince!: Date | null;

  /** Settings of the removed trigger; null when nothing is remembered. */
  @Column({ type: 'text', nullable: true })
  readonly schedule!: string | null;

  @Column({ name: 'time_zone', type: 'text', nullable: true })
  readonly timeZone!: string | null;

  @Column({ name: 'jitter_seconds', type: 'integer', nullable: true })
  readonly jitterSeconds!: number | null;

  /** An operator had paused the removed trigger. */
  @Column({ name: 'is_paused', type: 'boolean', default: false })
  readonly isPaused!: boolean;
}
