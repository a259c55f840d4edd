import type { DataSource } from 'typeorm';
import type { IdentityQuery, IdentityRecord, IdentityStore, StoredPassword } from './identity';
import { userNameKey } from './identity';

const FIND = `
  SELECT json_build_object(
    'store', 'person-directory',
    'personId', p.person_id,
    'userId', p.user_id,
    'providerId', null,
    'name', p.display_name,
    'personas', p.personas,
    'roles', coalesce((SELECT json_agg(r.role) FROM person_directory.person_role r WHERE r.person_id = p.person_id), '[]'),
    'facilities', coalesce((SELECT json_agg(f.facility_id) FROM person_directory.person_facility f WHERE f.person_id = p.person_id), '[]'),
    'groups', '[]'::json,
    'disabled', p.disabled) AS record
  FROM person_directory.person p`;
const FIND_BY_USER_NAME = `${FIND} WHERE p.user_name_key = $1`;
const FIND_BY_PERSON = `${FIND} WHERE p.person_id = $1`;
const FIND_BY_USER = `${FIND} WHERE p.user_id = $1`;

const FIND_PASSWORD = `
  SELECT json_build_object('store', 'person-directory', 'accountId', person_id, 'hash', password_hash) AS password
  FROM person_directory.person
  WHERE user_name_key = $1 AND password_hash IS NOT NULL AND NOT disabled`;
const UPGRADE_PASSWORD = `
  UPDATE person_directory.person SET password_hash = $3 WHERE person_id = $1 AND password_hash = $2`;

/** Customers, owners and residents. */
export class PersonDirectoryStore implements IdentityStore {
  readonly name = 'person-directory';

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
        // Windows accounts are internal users; a person is found by the link from there.
        return Promise.resolve([]);
    }
  }
}
