import type { DataSource } from 'typeorm';
import { Persona } from '@platform/personas';
import type { IdentityQuery, IdentityRecord, IdentityStore, StoredPassword } from './identity';
import { userNameKey } from './identity';

// A technician counts as disabled together with the provider.
const FIND = `
  SELECT json_build_object(
    'store', 'service-providers',
    'personId', t.person_id,
    'userId', null,
    'providerId', t.provider_id,
    'name', t.display_name,
    'personas', ${String(Persona.ServiceProvider)},
    'roles', '[]'::json,
    'facilities', coalesce((SELECT json_agg(f.facility_id) FROM service_providers.technician_facility f WHERE f.technician_id = t.technician_id), '[]'),
    'groups', '[]'::json,
    'disabled', t.disabled OR p.disabled) AS record
  FROM service_providers.technician t JOIN service_providers.provider p USING (provider_id)`;
const FIND_BY_USER_NAME = `${FIND} WHERE t.user_name_key = $1`;
const FIND_BY_PERSON = `${FIND} WHERE t.person_id = $1`;

const FIND_PROVIDER = `SELECT 1 FROM service_providers.provider WHERE provider_id = $1 AND NOT disabled`;

const FIND_PASSWORD = `
  SELECT json_build_object('store', 'service-providers', 'accountId', technician_id, 'hash', password_hash) AS password
  FROM service_providers.technician
  WHERE user_name_key = $1 AND password_hash IS NOT NULL AND NOT disabled`;
const UPGRADE_PASSWORD = `
  UPDATE service_providers.technician SET password_hash = $3 WHERE technician_id = $1 AND password_hash = $2`;

/** Service providers and those of their technicians who have an account. */
export class ServiceProvidersStore implements IdentityStore {
  readonly name = 'service-providers';

  constructor(private readonly dataSource: DataSource) {}

  async find(query: IdentityQuery): Promise<IdentityRecord[]> {
    const rows = await this.select(query);
    return rows.map((row) => row.record);
  }

  /** True for a provider that exists and is not disabled. */
  async hasProvider(providerId: number): Promise<boolean> {
    const rows = await this.dataSource.query<unknown[]>(FIND_PROVIDER, [providerId]);
    return rows.length > 0;
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
      case 'windows-account':
        // This store does not know internal users.
        return Promise.resolve([]);
    }
  }
}
