import type { DataSource } from 'typeorm';

/** A member of a security group, however deep. */
export interface GroupMember {
  key: 'UserName' | 'GroupName';
  value: string;
}

// Hand-written SQL: recursive. UNION, not UNION ALL: a group that was reached already is not walked again, so
// cycles end. The group asked for is not its own member, even where a cycle leads back to it. Disabled users
// are members of nothing. OFFSET 0 keeps each look-up one by key. Nobody can tell how many groups a recursion
// finds, and joined, a guess too high reads all users.
const FIND_MEMBERS = `
  WITH RECURSIVE contained AS (
    SELECT $1::text COLLATE "C" AS group_name
    UNION
    SELECT g.member_group_name FROM internal_legacy.group_member_group g JOIN contained USING (group_name)
  ), member AS (
    SELECT 'GroupName' AS key, group_name AS value FROM contained WHERE group_name <> $1
    UNION
    SELECT 'UserName', u.user_name COLLATE "C"
    FROM contained
    CROSS JOIN LATERAL (
      SELECT user_id FROM internal_legacy.group_member_user WHERE group_name = contained.group_name OFFSET 0) m
    CROSS JOIN LATERAL (
      SELECT user_name FROM internal_legacy.internal_user WHERE user_id = m.user_id AND NOT disabled OFFSET 0) u
  ) SELECT key, value FROM member ORDER BY key, value`;

// Hand-written SQL: recursive.
const HAS_ACCESS = `
  WITH RECURSIVE membership AS (
    SELECT m.group_name FROM internal_legacy.group_member_user m
    JOIN internal_legacy.internal_user u USING (user_id)
    WHERE u.user_id = $2 AND NOT u.disabled
    UNION
    SELECT g.group_name FROM internal_legacy.group_member_group g
    JOIN membership ON g.member_group_name = membership.group_name
  ) SELECT EXISTS (
    SELECT 1 FROM internal_legacy.access_point_grant JOIN membership USING (group_name) WHERE access_point_name = $1
  ) AS "hasAccess"`;

/**
 * Every statement on security groups and access points. They live in the internal legacy store, wherever that
 * is, and are used by nothing else there.
 */
export class AccessControlRepository {
  constructor(private readonly dataSource: DataSource) {}

  /**
   * Users and groups in this group and in the groups it contains, groups first; empty for an unknown group.
   */
  findMembers(groupName: string): Promise<GroupMember[]> {
    return this.dataSource.query(FIND_MEMBERS, [groupName]);
  }

  /** True when one of the user's groups, direct or inherited, was granted the access point. */
  async hasAccess(accessPointName: string, userId: number): Promise<boolean> {
    const rows = await this.dataSource.query<{ hasAccess: boolean }[]>(HAS_ACCESS, [accessPointName, userId]);
    return rows[0]?.hasAccess ?? false;
  }
}
