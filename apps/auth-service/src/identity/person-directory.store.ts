import type { DataSource } from 'typeorm';
import type { StoreStatements } from './sql-identity.store';
import { SqlIdentityStore } from './sql-identity.store';

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
  upgradePassword: `
  UPDATE person_directory.person SET password_hash = $3 WHERE person_id = $1 AND password_hash = $2`,
};

/** Customers, owners and residents. */
export class PersonDirectoryStore extends SqlIdentityStore {
  constructor(dataSource: DataSource) {
    super('person-directory', dataSource, STATEMENTS);
  }
}
