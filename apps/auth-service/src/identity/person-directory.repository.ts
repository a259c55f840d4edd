import type { StoredPassword } from './identity';
import { IdentityStoreRepository } from './identity-stores.repository';
import type { StoreStatements } from './identity-stores.repository';
import { Person } from './person-directory.entity';

const RECORD = `
  json_build_object(
    'store', 'person-directory',
    'personId', p.person_id,
    'userId', p.user_id,
    'providerId', null,
    'name', p.display_name,
    'personas', p.personas,
    'roles', coalesce((SELECT json_agg(r.role) FROM person_directory.person_role r WHERE r.person_id = p.person_id), '[]'),
    'facilities', coalesce((SELECT json_agg(f.facility_id) FROM person_directory.person_facility f WHERE f.person_id = p.person_id), '[]'),
    'groups', '[]'::json,
    'disabled', p.disabled)`;

const STATEMENTS: StoreStatements = {
  record: RECORD,
  from: 'person_directory.person p',
  by: {
    'user-name': 'p.user_name_key',
    person: 'p.person_id',
    user: 'p.user_id',
    // Windows accounts are internal users; a person is found by the link from there.
    'windows-account': null,
  },
  findPassword: `
  SELECT json_build_object('store', 'person-directory', 'accountId', person_id, 'hash', password_hash) AS password
  FROM person_directory.person
  WHERE user_name_key = $1 AND password_hash IS NOT NULL AND NOT disabled`,
};

/** Customers, owners and residents. */
export class PersonDirectoryRepository extends IdentityStoreRepository {
  readonly name = 'person-directory';
  readonly statements = STATEMENTS;

  async upgradePassword({ accountId, hash }: StoredPassword, newHash: string): Promise<void> {
    const unchanged = { personId: accountId, passwordHash: hash };
    await this.dataSource.getRepository(Person).update(unchanged, { passwordHash: newHash });
  }
}
