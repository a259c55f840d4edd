import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { BIGINT, INSTANT } from '../fields/fields';

/**
 * An occurrence of a trigger that has fired. The primary key makes it fire once, across replicas and
 * restarts. The table has one partition per month; `task.trigger_fires` is the default one.
 */
@Entity('fires')
@Index('fires_age', ['firedAt'])
export class TriggerFire {
  @PrimaryColumn({ name: 'facility_id', ...BIGINT, primaryKeyConstraintName: 'fires_pkey' })
  readonly facilityId!: number;

  @PrimaryColumn({ name: 'scheduled_at', ...INSTANT, primaryKeyConstraintName: 'fires_pkey' })
  readonly scheduledAt!: Date;

  @Column({ name: 'fired_at', ...INSTANT, default: () => 'now()' })
  readonly firedAt!: Date;

  @Column({ type: 'boolean' })
  readonly misfired!: boolean;

  /** Occurrences that a misfire replaces, itself included; 0 for an ordinary fire. */
  @Column({ name: 'missed_count', type: 'integer' })
  readonly missedCount!: number;

  /** Message id of the fire's TaskInstanceGenerationRequested. */
  @Column({ name: 'message_id', type: 'uuid' })
  readonly messageId!: string;
}
