import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isErrorCode } from '#infrastructure/process-identity.ts';
import type { Variables } from './environments.ts';

const FILE = 'task-connections.json';
const NAMES = ['DATABASE_URL', 'RABBITMQ_MAIN_URL', 'RABBITMQ_SCHEDULING_URL'] as const;

/** Notes how the task service of this run reaches its database and brokers, for `npm run task:admin`. The file holds passwords:
 *  only its owner can read it. */
export function saveTaskConnections(stateFolder: string, taskEnvironment: Variables): void {
  const connections = Object.fromEntries(NAMES.map((name) => [name, taskEnvironment[name]]));
  const next = join(stateFolder, `${FILE}.next`);
  // A leftover would keep its own permissions.
  rmSync(next, { force: true });
  writeFileSync(next, JSON.stringify(connections, null, 2), { mode: 0o600 });
  renameSync(next, join(stateFolder, FILE));
}

/** What the last run noted; null when none did. */
export function readTaskConnections(stateFolder: string): Variables | null {
  try {
    return JSON.parse(readFileSync(join(stateFolder, FILE), 'utf8')) as Variables;
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return null;
    throw error;
  }
}
