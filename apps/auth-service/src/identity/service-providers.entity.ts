import { Check, Column, Entity, ForeignKey, PrimaryColumn, PrimaryGeneratedColumn, Unique } from 'typeorm';
import { IDENTIFIER } from './identifier-column';

const SCHEMA = 'service_providers';

/** A company whose technicians work for the platform. */
@Entity({ schema: SCHEMA, name: 'provider' })
@Check('provider_provider_id_check', 'provider_id > 0')
export class Provider {
  @PrimaryColumn({ ...IDENTIFIER, name: 'provider_id' })
  providerId!: number;

  @Column({ type: 'text', name: 'provider_name' })
  providerName!: string;

  @Column({ type: 'boolean', default: false })
  disabled!: boolean;
}

/** A technician who has an account. The store belongs to others; this service may only replace `passwordHash`. */
@Entity({ schema: SCHEMA, name: 'technician' })
@Unique('technician_user_name_key_key', ['userNameKey'])
@Unique('technician_person_id_key', ['personId'])
@ForeignKey(() => Provider, ['providerId'], ['providerId'], { name: 'technician_provider_id_fkey' })
export class Technician {
  @PrimaryGeneratedColumn('identity', {
    type: 'bigint',
    name: 'technician_id',
    generatedIdentity: 'BY DEFAULT',
  })
  technicianId!: number;

  @Column({ ...IDENTIFIER, name: 'provider_id' })
  providerId!: number;

  @Column({ type: 'text', name: 'user_name' })
  userName!: string;

  /** Folded by the application; see `userNameKey`. */
  @Column({ type: 'text', name: 'user_name_key', collation: 'C' })
  userNameKey!: string;

  @Column({ type: 'text', name: 'display_name' })
  displayName!: string;

  @Column({ type: 'boolean', default: false })
  disabled!: boolean;

  /** See `readPasswordHash`. Null: the account cannot sign in with a password. */
  @Column({ type: 'text', name: 'password_hash', nullable: true })
  passwordHash!: string | null;

  /** The same person in the person directory. */
  @Column({ ...IDENTIFIER, name: 'person_id', nullable: true })
  personId!: number | null;
}

/** A facility where a technician works: claim `facilities`. */
@Entity({ schema: SCHEMA, name: 'technician_facility' })
@ForeignKey(() => Technician, ['technicianId'], ['technicianId'], {
  name: 'technician_facility_technician_id_fkey',
  onDelete: 'CASCADE',
})
export class TechnicianFacility {
  @PrimaryColumn({ ...IDENTIFIER, name: 'technician_id' })
  technicianId!: number;

  @PrimaryColumn({ type: 'integer', name: 'facility_id' })
  facilityId!: number;
}

/** Every table of the store. */
export const SERVICE_PROVIDERS_ENTITIES = [Provider, Technician, TechnicianFacility] as const;
