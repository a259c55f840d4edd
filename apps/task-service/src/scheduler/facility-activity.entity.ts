import { Column, Entity, PrimaryColumn } from 'typeorm';
import { BIGINT, INSTANT } from '../fields/fields';

/**
 * When business units last activated a facility, and when the last one deactivated it. While no unit holds it
 * active, the row also stores the settings of the facility's removed trigger.
 */
@Entity('facility_activity')
export class FacilityActivity {
  @PrimaryColumn({ name: 'facility_id', ...BIGINT, primaryKeyConstraintName: 'facility_activity_pkey' })
  readonly facilityId!: number;

  /** When the facility's last business unit deactivated it; null once it has a trigger again. */
  @Column({ name: 'inactive_since', ...INSTANT, nullable: true })
  readonly inactiveSince!: Date | null;

  /** When the facility was last activated. Earlier occurrences are not generated any more. */
  @Column({ name: 'active_since', ...INSTANT, nullable: true })
  readonly activeSince!: Date | null;

  /** Cron expression of the removed trigger; null if none is stored. */
  @Column({ type: 'text', nullable: true })
  readonly schedule!: string | null;

  @Column({ name: 'time_zone', type: 'text', nullable: true })
  readonly timeZone!: string | null;

  @Column({ name: 'jitter_seconds', type: 'integer', nullable: true })
  readonly jitterSeconds!: number | null;

  /** Whether an operator had paused the removed trigger. */
  @Column({ name: 'is_paused', type: 'boolean', default: false })
  readonly isPaused!: boolean;
}
