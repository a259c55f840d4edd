import { queryPrepared } from '@platform/database';
import type { PreparedStatement } from '@platform/database';
import type { DataSource } from 'typeorm';
import { Persona } from '@platform/personas';
import type { StoreStatements } from './sql-identity.store';
import { SqlIdentityStore } from './sql-identity.store';

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
  upgradePassword: `
  UPDATE service_providers.technician SET password_hash = $3 WHERE technician_id = $1 AND password_hash = $2`,
};

/** Service providers and those of their technicians who have an account. */
export class ServiceProvidersStore extends SqlIdentityStore {
  constructor(dataSource: DataSource) {
    super('service-providers', dataSource, STATEMENTS);
  }

  /** True for a provider that exists and is not disabled. */
  async hasProvider(providerId: number): Promise<boolean> {
    const rows = await queryPrepared(this.dataSource, FIND_PROVIDER, [providerId]);
    return rows.length > 0;
  }
}
