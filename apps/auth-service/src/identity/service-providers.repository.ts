import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import { Persona } from '@platform/personas';
import type { StoredPassword } from './identity';
import { IdentityStoreRepository } from './identity-stores.repository';
import type { StoreStatements } from './identity-stores.repository';
import { Technician } from './service-providers.entity';

// A technician counts as disabled together with the provider.
const RECORD = `
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

const STATEMENTS: StoreStatements = {
  record: RECORD,
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
  readonly statements = STATEMENTS;

  async upgradePassword({ accountId, hash }: StoredPassword, newHash: string): Promise<void> {
    const unchanged = { technicianId: accountId, passwordHash: hash };
    await this.dataSource.getRepository(Technician).update(unchanged, { passwordHash: newHash });
  }

  /** True for a provider that exists and is not disabled. */
  async hasProvider(providerId: number): Promise<boolean> {
    const rows = await queryPrepared(this.dataSource, FIND_PROVIDER, [providerId]);
    return rows.length > 0;
  }
}
