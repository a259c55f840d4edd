import type { DataSource } from 'typeorm';
import { Persona } from '@platform/personas';
import type { IdentityQuery, IdentityRecord, IdentityStore, StoredPassword } from './identity';
import { userNameKey } from './identity';

// UNION, not UNION ALL: a group that was reached already is not walked again, so cycles end.
const GROUPS = `
  WITH RECURSIVE membership AS (
    SELECT m.group_name FROM internal_legacy.group_member_user m WHERE m.user_id = u.user_id
    UNION
    SELECT g.group_name FROM internal_legacy.group_member_group g
    JOIN membership ON g.member_group_name = membership.group_name
  ) SELECT json_agg(group_name) FROM membership`;
const FIND = `
  SELECT json_build_object(
    'store', 'internal-legacy',
    'personId', u.person_id,
    'userId', u.user_id,
    'providerId', null,
    'name', u.display_name,
    'personas', ${String(Persona.InternalPartner)},
    'roles', '[]'::json,
    'facilities', '[]'::json,
    'groups', coalesce((${GROUPS}), '[]'),
    'disabled', u.disabled) AS record
  FROM internal_legacy.internal_user u`;
const FIND_BY_USER_NAME = `${FIND} WHERE u.user_name_key = $1`;
const FIND_BY_PERSON = `${FIND} WHERE u.person_id = $1`;
const FIND_BY_USER = `${FIND} WHERE u.user_id = $1`;
const FIND_BY_WINDOWS_ACCOUNT = `${FIND} WHERE u.windows_account_key = $1`;

const FIND_PASSWORD = `
  SELECT json_build_object('store', 'internal-legacy', 'accountId', user_id, 'hash', password_hash) AS password
  FROM internal_legacy.internal_user
  WHERE user_name_key = $1 AND password_hash IS NOT NULL AND NOT disabled`;
const UPGRADE_PASSWORD = `
  UPDATE internal_legacy.internal_user SET password_hash = $3 WHERE user_id = $1 AND password_hash = $2`;

/** Internal users and their security groups, direct and inherited. */
export class InternalLegacyStore implements IdentityStore {
  readonly name = 'internal-legacy';

  constructor(private readonly dataSource: DataSource) {}

  async find(query: IdentityQuery): Promise<IdentityRecord[]> {
    const rows = await this.select(query);
    return rows.map((row) => row.record);
  }

  async findPassword(userName: string): Promise<StoredPassword | null> {
    const rows = await this.dataSource.query<{ password: StoredPassword }[]>(FIND_PASSWORD, [
      userNameKey(userName),
    ]);
    return rows[0]?.password ?? null;
  }

  async upgradePassword(password: StoredPassword, newHash: string): Promise<void> {
    await this.dataSource.query(UPGRADE_PASSWORD, [password.accountId, password.hash, newHash]);
  }

  private select(query: IdentityQuery): Promise<{ record: IdentityRecord }[]> {
    switch (query.by) {
      case 'user-name':
        return this.dataSource.query(FIND_BY_USER_NAME, [userNameKey(query.userName)]);
      case 'person':
        return this.dataSource.query(FIND_BY_PERSON, [query.personId]);
      case 'user':
        return this.dataSource.query(FIND_BY_USER, [query.userId]);
      case 'windows-account':
        return this.dataSource.query(FIND_BY_WINDOWS_ACCOUNT, [query.accountKey]);
    }
  }
}
