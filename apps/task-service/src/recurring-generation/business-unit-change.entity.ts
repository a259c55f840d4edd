import { Column, Entity, PrimaryColumn, Index } from 'typeorm';
import { BIGINT } from '../fields/fields';

/** An applied change of a business unit. */
abstract class AppliedChange {
  @Column({ name: 'event_id', type: 'uuid' })
  readonly eventId!: string;

  @Column({ name: 'occurred_at', type: 'timestamptz' })
  readonly occurredAt!: Date;

  @Column({ name: 'applied_at', type: 'timestamptz', default: () => 'now()' })
  readonly appliedAt!: Date;
}

/**
 * The last change of each business unit, for version 0.2. Later versions store it per facility, in
 * `BusinessUnitFacility`.
 */
@Entity('business_unit_changes')
export class AppliedBusinessUnitChange extends AppliedChange {
  @PrimaryColumn({
    name: 'business_unit_id',
    ...BIGINT,
    primaryKeyConstraintName: 'business_unit_changes_pkey',
  })
  readonly businessUnitId!: number;

  @Column({ name: 'change_type', type: 'text' })
  readonly changeType!: string;

  /** Date of the last change that version 0.2 applied. */
  @Column({ name: 'per_unit_at', type: 'timestamptz', nullable: true })
  readonly perUnitAt!: Date | null;
}

/**
 * Whether a business unit holds a facility active, by the last change applied to the pair. An older change
 * that arrives later is stale.
 */
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

  /**
   * Date of the pair's last `Activated`; '-infinity' if only lists activated it, null if the previous release
   * wrote the row last.
   */
  @Column({ name: 'activated_at', type: 'timestamptz', nullable: true })
  readonly activatedAt!: Date | number | null;
}

/**
 * State of a business unit, independent of the order in which its changes arrived. It shows whether a change
 * is stale even for facilities that have no pair with the unit yet.
 */
@Entity('business_units')
export class BusinessUnit {
  @PrimaryColumn({ name: 'business_unit_id', ...BIGINT, primaryKeyConstraintName: 'business_units_pkey' })
  readonly businessUnitId!: number;

  /** Dates of its activations since the last deactivation, ascending; empty while the unit is not active. */
  @Column({ type: 'timestamptz', array: true, default: () => `'{}'` })
  readonly activations!: Date[];

  @Column({ name: 'deactivated_at', type: 'timestamptz', nullable: true })
  readonly deactivatedAt!: Date | null;

  /** Date of the last `Updated`, which lists all facilities of the unit. */
  @Column({ name: 'listed_at', type: 'timestamptz', nullable: true })
  readonly listedAt!: Date | null;

  /**
   * The facilities on the list of `listedAt`. An activation that is older than the list but arrives later
   * must not add others.
   */
  @Column({ name: 'listed_facilities', type: 'bigint', array: true, nullable: true })
  readonly listedFacilities!: string[] | null;
}
