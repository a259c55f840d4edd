import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isErrorCode } from '#infrastructure/process-identity.ts';
import type { Variables } from './environments.ts';

/** The services with an administration command line (`admin.js` in their bundle), and the variables it reads. */
const VARIABLES = {
  auth: ['DATABASE_URL', 'MIGRATION_DATABASE_URL', 'SECRET_ENCRYPTION_KEY'],
  task: ['DATABASE_URL', 'RABBITMQ_MAIN_URL', 'RABBITMQ_SCHEDULING_URL'],
} as const;

export type AdministeredService = keyof typeof VARIABLES;

export function isAdministeredService(name: string | undefined): name is AdministeredService {
  return name !== undefined && Object.hasOwn(VARIABLES, name);
}

/** Notes in the state folder what administering a service takes and nothing else of its environment; for the folder's owner only,
 *  because it holds passwords and a key. */
export function saveAdministration(
  stateFolder: string,
  service: AdministeredService,
  environment: Variables,
): void {
  const variables = Object.fromEntries(VARIABLES[service].map((name) => [name, environment[name]]));
  const file = fileOf(stateFolder, service);
  // A leftover would keep its own permissions.
  rmSync(`${file}.next`, { force: true });
  writeFileSync(`${file}.next`, JSON.stringify(variables, null, 2), { mode: 0o600 });
  renameSync(`${file}.next`, file);
}

/** What the last start of this state folder noted; empty when there was none. */
export function readAdministration(stateFolder: string, service: AdministeredService): Variables {
  try {
    return JSON.parse(readFileSync(fileOf(stateFolder, service), 'utf8')) as Variables;
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return {};
    throw error;
  }
}

function fileOf(stateFolder: string, service: AdministeredService): string {
  return join(stateFolder, `${service}-administration.json`);
}
