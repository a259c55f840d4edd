import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isErrorCode } from '#infrastructure/process-identity.ts';
import type { Variables } from './environments.ts';

const FILE = 'administration.json';
const NAMES = ['DATABASE_URL', 'MIGRATION_DATABASE_URL', 'SECRET_ENCRYPTION_KEY'] as const;

/** Notes in the state folder what administering the auth service takes, for its owner only: it holds a password and a key. */
export function saveAdministration(stateFolder: string, ownerEnvironment: Variables): void {
  const file = join(stateFolder, FILE);
  const variables = Object.fromEntries(NAMES.map((name) => [name, ownerEnvironment[name]]));
  writeFileSync(`${file}.next`, JSON.stringify(variables, null, 2), { mode: 0o600 });
  renameSync(`${file}.next`, file);
}

/** What the last start of this state folder noted; empty when there was none. */
export function readAdministration(stateFolder: string): Variables {
  try {
    return JSON.parse(readFileSync(join(stateFolder, FILE), 'utf8')) as Variables;
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return {};
    throw error;
  }
}
