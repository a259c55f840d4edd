import { Column, Entity, PrimaryColumn } from 'typeorm';
import { BIGINT } from '../fields/columns';

/** The last change applied of each business unit: an older one that arrives later is stale. */
@Entity('business_unit_changes')
export class AppliedBusinessUnitChange {
  @PrimaryColumn({
    name: 'business_unit_id',
    ...BIGINT,
    primaryKeyConstraintName: 'business_unit_changes_pkey',
  })
  readonly businessUnitId!: number;

  @Column({ name: 'event_id', type: 'uuid' })
  readonly eventId!: string;

  @Column({ name: 'change_type', type: 'text' })
  readonly changeType!: string;

  @Column({ name: 'occurred_at', type: 'timestamptz' })
  readonly occurredAt!: Date;

  @Column({ name: 'applied_at', type: 'timestamptz', default: () => 'now()' })
  readonly appliedAt!: Date;
}
