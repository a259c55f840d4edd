import { Column, Entity, Index, PrimaryColumn } from 'typeorm';
import { BIGINT } from '../fields/columns';
import { AppliedChange } from './business-unit-change.entity';

/** Whether a business unit holds a facility active, by the last change applied to the pair: an older one that arrives later is stale. */
@Entity('business_unit_facilities')
@Index('business_unit_facilities_active', ['facilityId'], { where: 'is_active' })
export class BusinessUnitFacility extends AppliedChange {
  @PrimaryColumn({
    name: 'business_unit_id',
    ...BIGINT,
    primaryKeyConstraintName: 'business_unit_facilities_pkey',
  })
  readonly businessUnitId!: number;

  @PrimaryColumn({
    name: 'facility_id',
    ...BIGINT,
    primaryKeyConstraintName: 'business_unit_facilities_pkey',
  })
  readonly facilityId!: number;

  @Column({ name: 'is_active', type: 'boolean' })
  readonly isActive!: boolean;
}
