import {
  Check,
  Column,
  Entity,
  ForeignKey,
  Index,
  PrimaryColumn,
  PrimaryGeneratedColumn,
  Unique,
} from 'typeorm';
import type { ColumnOptions } from 'typeorm';

/**
 * A column for the identifier of a person, a user or a provider. The driver reads `bigint` as text;
 * identifiers are small enough for a number.
 */
export const IDENTIFIER = {
  type: 'bigint',
  transformer: {
    from: (text: string | null): number | null => (text === null ? null : Number(text)),
    to: (identifier: unknown) => identifier,
  },
} as const satisfies ColumnOptions;

/**
 * Columns of every account that may sign in with a password. Other teams own the stores; this service may
 * only replace `passwordHash`.
 */
export abstract class StoreAccount {
  @Column({ type: 'text', name: 'user_name' })
  userName!: string;

  /** The user name, folded by `userNameKey`. */
  @Column({ type: 'text', name: 'user_name_key', collation: 'C' })
  userNameKey!: string;

  @Column({ type: 'text', name: 'display_name' })
  displayName!: string;

  @Column({ type: 'boolean', default: false })
  disabled!: boolean;

  /** A hash that `readPasswordHash` understands. Null: the account cannot sign in with a password. */
  @Column({ type: 'text', name: 'password_hash', nullable: true })
  passwordHash!: string | null;
}

/** A customer, owner or resident. */
@Entity({ schema: 'person_directory', name: 'person' })
@Unique('person_user_name_key_key', ['userNameKey'])
@Unique('person_user_id_key', ['userId'])
@Check('person_person_id_check', 'person_id > 0')
@Check('person_personas_check', 'personas & ~26 = 0')
export class Person extends StoreAccount {
  @PrimaryColumn({ ...IDENTIFIER, name: 'person_id' })
  personId!: number;

  /** Bits of Customer, Resident and Owner only. */
  @Column({ type: 'integer' })
  personas!: number;

  /** The same person's account in the internal legacy store. */
  @Column({ ...IDENTIFIER, name: 'user_id', nullable: true })
  userId!: number | null;
}

/** A role of a person: claim `roles`. */
@Entity({ schema: 'person_directory', name: 'person_role' })
@ForeignKey(() => Person, ['personId'], ['personId'], {
  name: 'person_role_person_id_fkey',
  onDelete: 'CASCADE',
})
export class PersonRole {
  @PrimaryColumn({ ...IDENTIFIER, name: 'person_id' })
  personId!: number;

  @PrimaryColumn({ type: 'text' })
  role!: string;

  /** The persona that the role belongs to. For null see `uniteAuthority`. */
  @Column({ type: 'integer', nullable: true })
  persona!: number | null;
}

/** A facility of a person: claim `facilities`. */
@Entity({ schema: 'person_directory', name: 'person_facility' })
@ForeignKey(() => Person, ['personId'], ['personId'], {
  name: 'person_facility_person_id_fkey',
  onDelete: 'CASCADE',
})
export class PersonFacility {
  @PrimaryColumn({ ...IDENTIFIER, name: 'person_id' })
  personId!: number;

  @PrimaryColumn({ type: 'integer', name: 'facility_id' })
  facilityId!: number;

  /** The persona that the facility belongs to. Null: all personas of the person. */
  @Column({ type: 'integer', nullable: true })
  persona!: number | null;
}

export const PERSON_DIRECTORY_ENTITIES = [Person, PersonRole, PersonFacility] as const;

@Entity({ schema: 'internal_legacy', name: 'internal_user' })
@Unique('internal_user_user_name_key_key', ['userNameKey'])
@Unique('internal_user_person_id_key', ['personId'])
@Unique('internal_user_windows_account_key_key', ['windowsAccountKey'])
@Check('internal_user_user_id_check', 'user_id > 0')
@Check('internal_user_windows_account_key_check', `windows_account_key ~ '^[^@]+@[^@]+$'`)
export class InternalUser extends StoreAccount {
  @PrimaryColumn({ ...IDENTIFIER, name: 'user_id' })
  userId!: number;

  /** The same person's account in the person directory. */
  @Column({ ...IDENTIFIER, name: 'person_id', nullable: true })
  personId!: number | null;

  /** The Windows account mapped to this user; see `windowsAccountKey`. */
  @Column({ type: 'text', name: 'windows_account_key', collation: 'C', nullable: true })
  windowsAccountKey!: string | null;
}

/** A group of users and of other groups. Groups may contain each other in cycles. */
@Entity({ schema: 'internal_legacy', name: 'security_group' })
export class SecurityGroup {
  @PrimaryColumn({ type: 'text', name: 'group_name', collation: 'C' })
  groupName!: string;
}

/** Makes a user a direct member of a group. */
@Entity({ schema: 'internal_legacy', name: 'group_member_user' })
@ForeignKey(() => SecurityGroup, ['groupName'], ['groupName'], {
  name: 'group_member_user_group_name_fkey',
  onDelete: 'CASCADE',
})
@ForeignKey(() => InternalUser, ['userId'], ['userId'], {
  name: 'group_member_user_user_id_fkey',
  onDelete: 'CASCADE',
})
@Index('group_member_user_user', ['userId'])
export class GroupMemberUser {
  @PrimaryColumn({ type: 'text', name: 'group_name', collation: 'C' })
  groupName!: string;

  @PrimaryColumn({ ...IDENTIFIER, name: 'user_id' })
  userId!: number;
}

/** Makes a group a direct member of another group. */
@Entity({ schema: 'internal_legacy', name: 'group_member_group' })
@ForeignKey(() => SecurityGroup, ['groupName'], ['groupName'], {
  name: 'group_member_group_group_name_fkey',
  onDelete: 'CASCADE',
})
@ForeignKey(() => SecurityGroup, ['memberGroupName'], ['groupName'], {
  name: 'group_member_group_member_group_name_fkey',
  onDelete: 'CASCADE',
})
@Index('group_member_group_member', ['memberGroupName'])
export class GroupMemberGroup {
  @PrimaryColumn({ type: 'text', name: 'group_name', collation: 'C' })
  groupName!: string;

  @PrimaryColumn({ type: 'text', name: 'member_group_name', collation: 'C' })
  memberGroupName!: string;
}

/** A resource or action that needs permission. */
@Entity({ schema: 'internal_legacy', name: 'access_point' })
export class AccessPoint {
  @PrimaryColumn({ type: 'text', name: 'access_point_name', collation: 'C' })
  accessPointName!: string;
}

/** Permits direct and indirect members of a group to pass an access point. */
@Entity({ schema: 'internal_legacy', name: 'access_point_grant' })
@ForeignKey(() => AccessPoint, ['accessPointName'], ['accessPointName'], {
  name: 'access_point_grant_access_point_name_fkey',
  onDelete: 'CASCADE',
})
@ForeignKey(() => SecurityGroup, ['groupName'], ['groupName'], {
  name: 'access_point_grant_group_name_fkey',
  onDelete: 'CASCADE',
})
export class AccessPointGrant {
  @PrimaryColumn({ type: 'text', name: 'access_point_name', collation: 'C' })
  accessPointName!: string;

  @PrimaryColumn({ type: 'text', name: 'group_name', collation: 'C' })
  groupName!: string;
}

export const INTERNAL_LEGACY_ENTITIES = [
  InternalUser,
  SecurityGroup,
  GroupMemberUser,
  GroupMemberGroup,
  AccessPoint,
  AccessPointGrant,
] as const;

/** A company whose technicians work for the platform. */
@Entity({ schema: 'service_providers', name: 'provider' })
@Check('provider_provider_id_check', 'provider_id > 0')
export class Provider {
  @PrimaryColumn({ ...IDENTIFIER, name: 'provider_id' })
  providerId!: number;

  @Column({ type: 'text', name: 'provider_name' })
  providerName!: string;

  @Column({ type: 'boolean', default: false })
  disabled!: boolean;
}

/** A technician who has an account. */
@Entity({ schema: 'service_providers', name: 'technician' })
@Unique('technician_user_name_key_key', ['userNameKey'])
@Unique('technician_person_id_key', ['personId'])
@Index('technician_provider_name', ['providerId', 'displayName'])
@ForeignKey(() => Provider, ['providerId'], ['providerId'], { name: 'technician_provider_id_fkey' })
export class Technician extends StoreAccount {
  @PrimaryGeneratedColumn('identity', {
    type: 'bigint',
    name: 'technician_id',
    generatedIdentity: 'BY DEFAULT',
  })
  technicianId!: number;

  @Column({ ...IDENTIFIER, name: 'provider_id' })
  providerId!: number;

  /** The same person's account in the person directory. */
  @Column({ ...IDENTIFIER, name: 'person_id', nullable: true })
  personId!: number | null;
}

/** A facility where a technician works: claim `facilities`. */
@Entity({ schema: 'service_providers', name: 'technician_facility' })
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

export const SERVICE_PROVIDERS_ENTITIES = [Provider, Technician, TechnicianFacility] as const;
