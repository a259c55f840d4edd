import { batched, listParameter, readPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import { Persona } from '@platform/personas';
import type { DataSource } from 'typeorm';
import { userNameKey } from './identity';
import type { Store } from './identity';
import { InternalUser, Person, Technician } from './identity-stores.entity';
import { IdentityStore } from './combined-stores.repository';
import type { StoreStatements } from './combined-stores.repository';

// Lists use array_to_json(ARRAY(…)): starting up json_agg costs a statement more than its rows do.
const PERSON_RECORD = `
  json_build_object(
    'store', 'person-directory',
    'accountId', p.person_id,
    'userNameKey', p.user_name_key,
    'personId', p.person_id,
    'userId', p.user_id,
    'providerId', null,
    'name', p.display_name,
    'personas', p.personas,
    'roles', array_to_json(ARRAY(SELECT json_build_array(r.role, r.persona) FROM person_directory.person_role r WHERE r.person_id = p.person_id)),
    'facilities', array_to_json(ARRAY(SELECT json_build_array(f.facility_id, f.persona) FROM person_directory.person_facility f WHERE f.person_id = p.person_id)),
    'groups', '[]'::json,
    'disabled', p.disabled)`;

const PERSON_STATEMENTS: StoreStatements = {
  record: PERSON_RECORD,
  from: 'person_directory.person p',
  account: 'p.person_id',
  names: 'person',
  by: {
    'user-name': 'p.user_name_key',
    person: 'p.person_id',
    user: 'p.user_id',
    technician: null,
    // Windows accounts belong to internal users. A link leads from there to the person.
    'windows-account': null,
  },
};

/** Customers, owners and residents. */
export class PersonDirectoryRepository extends IdentityStore {
  readonly name = 'person-directory';
  readonly statements = PERSON_STATEMENTS;
  readonly accounts = { entity: Person, id: 'personId' };
}

// UNION rather than UNION ALL ends cycles: a group already reached is not visited again.
const USER_GROUPS = `
  WITH RECURSIVE membership AS (
    SELECT m.group_name FROM internal_legacy.group_member_user m WHERE m.user_id = u.user_id
    UNION
    SELECT g.group_name FROM internal_legacy.group_member_group g
    JOIN membership ON g.member_group_name = membership.group_name
  ) SELECT json_build_array(group_name, null) FROM membership`;
const INTERNAL_USER_RECORD = `
  json_build_object(
    'store', 'internal-legacy',
    'accountId', u.user_id,
    'userNameKey', u.user_name_key,
    'personId', u.person_id,
    'userId', u.user_id,
    'providerId', null,
    'name', u.display_name,
    'personas', ${String(Persona.InternalPartner)},
    'roles', '[]'::json,
    'facilities', '[]'::json,
    'groups', array_to_json(ARRAY(${USER_GROUPS})),
    'disabled', u.disabled)`;

const INTERNAL_USER_STATEMENTS: StoreStatements = {
  record: INTERNAL_USER_RECORD,
  from: 'internal_legacy.internal_user u',
  account: 'u.user_id',
  names: 'user',
  by: {
    'user-name': 'u.user_name_key',
    person: 'u.person_id',
    user: 'u.user_id',
    technician: null,
    'windows-account': 'u.windows_account_key',
  },
};

/** Internal users and their security groups, direct and inherited. */
export class InternalLegacyRepository extends IdentityStore {
  readonly name = 'internal-legacy';
  readonly statements = INTERNAL_USER_STATEMENTS;
  readonly accounts = { entity: InternalUser, id: 'userId' };
}

// A technician counts as disabled if the provider is.
const TECHNICIAN_RECORD = `
  json_build_object(
    'store', 'service-providers',
    'accountId', t.technician_id,
    'userNameKey', t.user_name_key,
    'personId', t.person_id,
    'userId', null,
    'providerId', t.provider_id,
    'name', t.display_name,
    'personas', ${String(Persona.ServiceProvider)},
    'roles', '[]'::json,
    'facilities', array_to_json(ARRAY(SELECT json_build_array(f.facility_id, null) FROM service_providers.technician_facility f WHERE f.technician_id = t.technician_id)),
    'groups', '[]'::json,
    'disabled', t.disabled OR (SELECT p.disabled FROM service_providers.provider p WHERE p.provider_id = t.provider_id))`;

// Hand-written SQL: batched, and two look-ups in one round trip of the trust flows. It reads at most two
// technicians of one name, because two already make the name ambiguous.
const FIND_ACCOUNTS: PreparedStatement = {
  name: 'find-technicians',
  text: `
  SELECT asked.position::integer,
    (SELECT json_agg(t.technician_id) FROM service_providers.technician t
     WHERE t.user_name_key = asked.user_name_key AND t.provider_id = p.provider_id) AS "byUserName",
    (SELECT json_agg(named.technician_id) FROM (
       SELECT t.technician_id FROM service_providers.technician t
       WHERE t.provider_id = p.provider_id AND t.display_name = asked.name LIMIT 2) AS named) AS "byName"
  FROM unnest(${listParameter(1, 'bigint')}, ${listParameter(2, 'text')}, ${listParameter(3, 'text')}) WITH ORDINALITY
    AS asked (provider_id, name, user_name_key, position)
  CROSS JOIN LATERAL (
    SELECT provider_id FROM service_providers.provider WHERE provider_id = asked.provider_id AND NOT disabled LIMIT 1) AS p`,
};

const TECHNICIAN_STATEMENTS: StoreStatements = {
  record: TECHNICIAN_RECORD,
  from: 'service_providers.technician t',
  account: 't.technician_id',
  names: null,
  by: {
    'user-name': 't.user_name_key',
    person: 't.person_id',
    // This store does not know internal users.
    user: null,
    technician: 't.technician_id',
    'windows-account': null,
  },
};

/** Service providers' technicians who have an account. */
export class ServiceProvidersRepository extends IdentityStore {
  readonly name = 'service-providers';
  readonly statements = TECHNICIAN_STATEMENTS;
  readonly accounts = { entity: Technician, id: 'technicianId' };

  /**
   * Finds the accounts of a provider's technician, by user name and by name: at most two of each, null if
   * none matches. Returns null if the provider is unknown or disabled. Concurrent calls share a statement.
   */
  readonly findAccounts: (technician: NamedTechnician) => Promise<TechnicianAccounts | null> = batched(
    (technicians) => this.findAllAccounts(technicians),
  );

  private async findAllAccounts(
    technicians: readonly NamedTechnician[],
  ): Promise<(TechnicianAccounts | null)[]> {
    const found = await readPrepared<TechnicianAccounts & { position: number }>(
      this.dataSource,
      FIND_ACCOUNTS,
      [
        technicians.map(({ providerId }) => providerId),
        technicians.map(({ name }) => name),
        technicians.map(({ userName }) => (userName === null ? null : userNameKey(userName))),
      ],
    );
    const byPosition = new Map(found.map((accounts) => [accounts.position, accounts]));
    return technicians.map((_, index) => byPosition.get(index + 1) ?? null);
  }
}

/** A technician as the provider's application names them. */
interface NamedTechnician {
  providerId: number;
  name: string;
  userName: string | null;
}

interface TechnicianAccounts {
  byUserName: number[] | null;
  byName: number[] | null;
}

/** The stores in order of precedence. */
export const STORES = {
  PERSON_DIRECTORY: PersonDirectoryRepository,
  INTERNAL_LEGACY: InternalLegacyRepository,
  SERVICE_PROVIDERS: ServiceProvidersRepository,
} as const satisfies Record<Store, new (dataSource: DataSource) => IdentityStore>;
