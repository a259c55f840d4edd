import type { DataSource } from 'typeorm';

/** A direct or indirect member of a security group. */
export interface GroupMember {
  key: 'UserName' | 'GroupName';
  value: string;
}

// Hand-written SQL: recursive. UNION rather than UNION ALL ends cycles: a group already reached is not
// visited again. The requested group is never its own member, even in a cycle. Disabled users are not
// members. OFFSET 0 forces a look-up by key for each row: the planner cannot estimate how many groups a
// recursion finds, and a plain join with too high an estimate would read all users.
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
 * The only statements on security groups and access points. The tables belong to the internal legacy store,
 * in whichever database it is.
 */
export class AccessControlRepository {
  constructor(private readonly dataSource: DataSource) {}

  /**
   * Returns the users and groups in this group and its nested groups, groups first. Empty for an unknown
   * group.
   */
  findMembers(groupName: string): Promise<GroupMember[]> {
    return this.dataSource.query(FIND_MEMBERS, [groupName]);
  }

  /** Whether one of the user's groups, direct or inherited, was granted the access point. */
  async hasAccess(accessPointName: string, userId: number): Promise<boolean> {
    const rows = await this.dataSource.query<{ hasAccess: boolean }[]>(HAS_ACCESS, [accessPointName, userId]);
    return rows[0]?.hasAccess ?? false;
  }
}
