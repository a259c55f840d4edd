import { Check, Column, Entity, ForeignKey, Index, PrimaryColumn, Unique } from 'typeorm';
import { IDENTIFIER } from './identifier-column';

const SCHEMA = 'internal_legacy';

/** An internal user. The store belongs to others; this service may only replace `passwordHash`. */
@Entity({ schema: SCHEMA, name: 'internal_user' })
@Unique('internal_user_user_name_key_key', ['userNameKey'])
@Unique('internal_user_person_id_key', ['personId'])
@Unique('internal_user_windows_account_key_key', ['windowsAccountKey'])
@Check('internal_user_user_id_check', 'user_id > 0')
@Check('internal_user_windows_account_key_check', `windows_account_key ~ '^[^@]+@[^@]+$'`)
export class InternalUser {
  @PrimaryColumn({ ...IDENTIFIER, name: 'user_id' })
  userId!: number;

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

  /** The Windows account mapped to this user; see `windowsAccountKey`. */
  @Column({ type: 'text', name: 'windows_account_key', collation: 'C', nullable: true })
  windowsAccountKey!: string | null;
}

/** A group of users and of other groups. Groups may contain each other in cycles. */
@Entity({ schema: SCHEMA, name: 'security_group' })
export class SecurityGroup {
  @PrimaryColumn({ type: 'text', name: 'group_name', collation: 'C' })
  groupName!: string;
}

/** A user is a direct member of a group. */
@Entity({ schema: SCHEMA, name: 'group_member_user' })
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

/** A group is a direct member of another. */
@Entity({ schema: SCHEMA, name: 'group_member_group' })
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

/** Something that needs permission. */
@Entity({ schema: SCHEMA, name: 'access_point' })
export class AccessPoint {
  @PrimaryColumn({ type: 'text', name: 'access_point_name', collation: 'C' })
  accessPointName!: string;
}

/** The members of a group, however deep, may pass an access point. */
@Entity({ schema: SCHEMA, name: 'access_point_grant' })
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

/** Every table of the store. */
export const INTERNAL_LEGACY_ENTITIES = [
  InternalUser,
  SecurityGroup,
  GroupMemberUser,
  GroupMemberGroup,
  AccessPoint,
  AccessPointGrant,
] as const;
