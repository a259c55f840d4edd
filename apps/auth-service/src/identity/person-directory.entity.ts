import { Check, Column, Entity, ForeignKey, PrimaryColumn, Unique } from 'typeorm';
import { IDENTIFIER } from './identifier-column';

const SCHEMA = 'person_directory';

/** A customer, owner or resident. The store belongs to others; this service may only replace `passwordHash`. */
@Entity({ schema: SCHEMA, name: 'person' })
@Unique('person_user_name_key_key', ['userNameKey'])
@Unique('person_user_id_key', ['userId'])
@Check('person_person_id_check', 'person_id > 0')
@Check('person_personas_check', 'personas & ~26 = 0')
export class Person {
  @PrimaryColumn({ ...IDENTIFIER, name: 'person_id' })
  personId!: number;

  @Column({ type: 'text', name: 'user_name' })
  userName!: string;

  /** Folded by the application; see `userNameKey`. */
  @Column({ type: 'text', name: 'user_name_key', collation: 'C' })
  userNameKey!: string;

  @Column({ type: 'text', name: 'display_name' })
  displayName!: string;

  /** Customer, Resident and Owner only. */
  @Column({ type: 'integer' })
  personas!: number;

  @Column({ type: 'boolean', default: false })
  disabled!: boolean;

  /** See `readPasswordHash`. Null: the account cannot sign in with a password. */
  @Column({ type: 'text', name: 'password_hash', nullable: true })
  passwordHash!: string | null;

  /** The same person in the internal legacy store. */
  @Column({ ...IDENTIFIER, name: 'user_id', nullable: true })
  userId!: number | null;
}

/** A role of a person: claim `roles`. */
@Entity({ schema: SCHEMA, name: 'person_role' })
@ForeignKey(() => Person, ['personId'], ['personId'], {
  name: 'person_role_person_id_fkey',
  onDelete: 'CASCADE',
})
export class PersonRole {
  @PrimaryColumn({ ...IDENTIFIER, name: 'person_id' })
  personId!: number;

  @PrimaryColumn({ type: 'text' })
  role!: string;
}

/** A facility a person belongs to: claim `facilities`. */
@Entity({ schema: SCHEMA, name: 'person_facility' })
@ForeignKey(() => Person, ['personId'], ['personId'], {
  name: 'person_facility_person_id_fkey',
  onDelete: 'CASCADE',
})
export class PersonFacility {
  @PrimaryColumn({ ...IDENTIFIER, name: 'person_id' })
  personId!: number;

  @PrimaryColumn({ type: 'integer', name: 'facility_id' })
  facilityId!: number;
}

/** Every table of the store. */
export const PERSON_DIRECTORY_ENTITIES = [Person, PersonRole, PersonFacility] as const;
