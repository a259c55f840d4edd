import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import { Persona } from '@platform/personas';
import { InternalUser, Person, Technician } from './identity-stores.entity';
import { IdentityStoreRepository } from './identity-stores.repository';
import type { StoreStatements } from './identity-stores.repository';

const PERSON_RECORD = `
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

const PERSON_STATEMENTS: StoreStatements = {
  record: PERSON_RECORD,
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
  readonly statements = PERSON_STATEMENTS;
  readonly accounts = { entity: Person, id: 'personId' };
}

// UNION, not UNION ALL: a group that was reached already is not walked again, so cycles end.
const USER_GROUPS = `
  WITH RECURSIVE membership AS (
    SELECT m.group_name FROM internal_legacy.group_member_user m WHERE m.user_id = u.user_id
    UNION
    SELECT g.group_name FROM internal_legacy.group_member_group g
    JOIN membership ON g.member_group_name = membership.group_name
  ) SELECT json_agg(group_name) FROM membership`;
const INTERNAL_USER_RECORD = `
  json_build_object(
    'store', 'internal-legacy',
    'personId', u.person_id,
    'userId', u.user_id,
    'providerId', null,
    'name', u.display_name,
    'personas', ${String(Persona.InternalPartner)},
    'roles', '[]'::json,
    'facilities', '[]'::json,
    'groups', coalesce((${USER_GROUPS}), '[]'),
    'disabled', u.disabled)`;

const INTERNAL_USER_STATEMENTS: StoreStatements = {
  record: INTERNAL_USER_RECORD,
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
  readonly statements = INTERNAL_USER_STATEMENTS;
  readonly accounts = { entity: InternalUser, id: 'userId' };
}

// A technician counts as disabled together with the provider.
const TECHNICIAN_RECORD = `
  json_build_object(
    'store', 'service-providers',
    'personId', t.person_id,
    'userId', null,
    'providerId', t.provider_id,
    'name', t.display_name,
    'personas', ${String(Persona.ServiceProvider)},
    'roles', '[]'::json,
    'facilities', coalesce((SELECT json_agg(f.facility_id) FROM service_providers.technician_facility f WHERE f.technician_id = t.technician_id), '[]'),
    'groups', '[]'::json,
    'disabled', t.disabled OR p.disabled)`;

const FIND_PROVIDER: PreparedStatement = {
  name: 'find-provider',
  text: `SELECT 1 FROM service_providers.provider WHERE provider_id = $1 AND NOT disabled`,
};

const TECHNICIAN_STATEMENTS: StoreStatements = {
  record: TECHNICIAN_RECORD,
  from: 'service_providers.technician t JOIN service_providers.provider p USING (provider_id)',
  by: {
    'user-name': 't.user_name_key',
    person: 't.person_id',
    // This store does not know internal users.
    user: null,
    'windows-account': null,
  },
  findPassword: `
  SELECT json_build_object('store', 'service-providers', 'accountId', technician_id, 'hash', password_hash) AS password
  FROM service_providers.technician
  WHERE user_name_key = $1 AND password_hash IS NOT NULL AND NOT disabled`,
};

/** Service providers and those of their technicians who have an account. */
export class ServiceProvidersRepository extends IdentityStoreRepository {
  readonly name = 'service-providers';
  readonly statements = TECHNICIAN_STATEMENTS;
  readonly accounts = { entity: Technician, id: 'technicianId' };

  /** True for a provider that exists and is not disabled. */
  async hasProvider(providerId: number): Promise<boolean> {
    const rows = await queryPrepared(this.dataSource, FIND_PROVIDER, [providerId]);
    return rows.length > 0;
  }
}
