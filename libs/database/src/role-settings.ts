import type { Client } from 'pg';
import { quoteIdentifier } from './postgres-options';
import type { RoleSettings } from './postgres-options';

interface Found {
  database: string;
  settings: string[];
}

/**
 * Returns the statements that give `role` the settings that it lacks, in this database only. A pooler in
 * transaction mode drops the options of a client's connection, but settings of the role apply to every
 * connection. A time limit or search path set by the operator is kept.
 */
export async function missingRoleSettings(
  client: Client,
  role: string,
  wanted: RoleSettings,
): Promise<string[]> {
  // Settings of the role in this database come first, because they override its global ones.
  const { rows } = await client.query<Found>(
    `SELECT current_database() AS database, ARRAY(
       SELECT unnest(setconfig) FROM pg_db_role_setting
       WHERE setrole = (SELECT oid FROM pg_roles WHERE rolname = $1)
         AND setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
       ORDER BY setdatabase DESC) AS settings`,
    [role],
  );
  const { database, settings } = rows[0]!;
  const present = new Map<string, string>();
  for (const setting of settings) {
    const at = setting.indexOf('=');
    const name = setting.slice(0, at);
    if (!present.has(name)) present.set(name, setting.slice(at + 1));
  }
  const target = `${quoteIdentifier(role)} IN DATABASE ${quoteIdentifier(database)}`;
  return Object.entries(wanted)
    .filter(([name, value]) => !isSatisfied(name, present.get(name), value))
    .map(([name, value]) => `ALTER ROLE ${target} SET ${name} = '${value}'`);
}

/**
 * Whether the role's present setting is acceptable. The isolation must be the wanted one. Any other setting
 * that an operator chose is acceptable, except a time limit of 0, which means none.
 */
function isSatisfied(name: string, present: string | undefined, wanted: string): boolean {
  if (present === undefined) return false;
  if (name === 'default_transaction_isolation') return present === wanted;
  return !name.endsWith('_timeout') || !/^0\D*$/.test(present);
}
