import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isErrorCode } from './process-identity.ts';

const FILE = 'addresses.json';

/** Where a running platform's processes answer, by environment variable: AUTH_URL, TASK_URL, … */
export type RunningAddresses = Readonly<Record<string, string>>;

/** Notes in the state folder where the platform that has just become ready answers. */
export function saveRunningAddresses(stateFolder: string, addresses: RunningAddresses): void {
  writeFileSync(join(stateFolder, FILE), `${JSON.stringify(addresses, null, 2)}\n`);
}

/** Where the last platform of this state folder answered; empty when none was ever ready. */
export function readRunningAddresses(stateFolder: string): RunningAddresses {
  try {
    return JSON.parse(readFileSync(join(stateFolder, FILE), 'utf8')) as RunningAddresses;
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return {};
    throw error;
  }
}
