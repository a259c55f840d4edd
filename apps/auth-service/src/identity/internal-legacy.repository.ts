import { Persona } from '@platform/personas';
import type { StoredPassword } from './identity';
import { IdentityStoreRepository } from './identity-stores.repository';
import type { StoreStatements } from './identity-stores.repository';
import { InternalUser } from './internal-legacy.entity';

// UNION, not UNION ALL: a group that was reached already is not walked again, so cycles end.
const GROUPS = `
  WITH RECURSIVE membership AS (
    SELECT m.group_name FROM internal_legacy.group_member_user m WHERE m.user_id = u.user_id
    UNION
    SELECT g.group_name FROM internal_legacy.group_member_group g
    JOIN membership ON g.member_group_name = membership.group_name
  ) SELECT json_agg(group_name) FROM membership`;
const RECORD = `
  json_build_object(
    'store', 'internal-legacy',
    'personId', u.person_id,
    'userId', u.user_id,
    'providerId', null,
    'name', u.display_name,
    'personas', ${String(Persona.InternalPartner)},
    'roles', '[]'::json,
    'facilities', '[]'::json,
    'groups', coalesce((${GROUPS}), '[]'),
    'disabled', u.disabled)`;

const STATEMENTS: StoreStatements = {
  record: RECORD,
  from: 'internal_legacy.internal_user u',
  by: {
    'user-name': 'u.user_name_key',
    person: 'u.person_id',
    user: 'u.user_id',
    'windows-account': 'u.windows_account_key',
  },
  findPassword: `
  SELECT json_build_object('store', 'internal-legacy', 'accountId', user_id, 'hash', password_hash) AS password
  FROM internal_legacy.internal_user
  WHERE user_name_key = $1 AND password_hash IS NOT NULL AND NOT disabled`,
};

/** Internal users and their security groups, direct and inherited. */
export class InternalLegacyRepository extends IdentityStoreRepository {
  readonly name = 'internal-legacy';
  readonly statements = STATEMENTS;

  async upgradePassword({ accountId, hash }: StoredPassword, newHash: string): Promise<void> {
    const unchanged = { userId: accountId, passwordHash: hash };
    await this.dataSource.getRepository(InternalUser).update(unchanged, { passwordHash: newHash });
  }
}
