import type { Client } from 'pg';
import { quoteIdentifier } from './postgres-options';
import type { RoleSettings } from './postgres-options';

interface Found {
  database: string;
  settings: string[];
}

/**
 * Statements that give `role` the settings that it lacks, in this database only. A pooler in transaction mode
 * passes on nothing that a client asks for when it connects, but settings of the role apply to every
 * connection. A time limit or search path that the operator chose stays.
 */
export async function missingRoleSettings(
  client: Client,
  role: string,
  wanted: RoleSettings,
): Promise<string[]> {
  // Those of the role in this database come first: they win over those of the role everywhere.
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

/** The isolation is the service's to decide, the rest the operator's. */
function isSatisfied(name: string, present: string | undefined, wanted: string): boolean {
  if (present === undefined) return false;
  if (name === 'default_transaction_isolation') return present === wanted;
  return !name.endsWith('_timeout') || !/^0\D*$/.test(present);
}
