import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isErrorCode } from './process-identity.ts';
import type { Variables } from './environments.ts';

/** Notes in the state folder with which environment a service runs and is migrated; for the folder's owner only, because it holds
 *  passwords and keys. */
export function saveServiceEnvironment(stateFolder: string, service: string, environment: Variables): void {
  const file = fileOf(stateFolder, service);
  // A leftover would keep its own permissions.
  rmSync(`${file}.next`, { force: true });
  writeFileSync(`${file}.next`, JSON.stringify(environment, null, 2), { mode: 0o600 });
  renameSync(`${file}.next`, file);
}

/** What the last start of this state folder noted, or null when there was none. */
export function readServiceEnvironment(stateFolder: string, service: string): Variables | null {
  try {
    return JSON.parse(readFileSync(fileOf(stateFolder, service), 'utf8')) as Variables;
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return null;
    throw error;
  }
}

function fileOf(stateFolder: string, service: string): string {
  return join(stateFolder, `${service}-environment.json`);
}
