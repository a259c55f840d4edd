/**
 * The task service's command line against the platform that runs from this checkout: `npm run task:admin -- outbox list`.
 * Elsewhere `node dist/apps/task-service/admin.js` does the same with the variables of its environment.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { FriendlyError } from '#infrastructure/friendly-error.ts';
import { findRunRecord, isSupervised } from '#infrastructure/run-record.ts';
import { openStateFolder } from '#infrastructure/state-folder.ts';
import { TASK_ADMIN } from './deployables.ts';
import { readTaskConnections } from './task-connections.ts';

const WORKSPACE = join(import.meta.dirname, '../..');

function connections(args: readonly string[]): Readonly<Record<string, string>> {
  // Help needs no platform.
  if (args.length === 0 || args.includes('--help') || args.includes('-h')) return {};
  const stateFolder = openStateFolder(WORKSPACE);
  const run = findRunRecord(join(stateFolder, 'run.json'));
  const variables = run !== null && isSupervised(run) ? readTaskConnections(stateFolder) : null;
  if (variables === null)
    throw new FriendlyError('No platform runs from this checkout. Start it with: npm start');
  return variables;
}

function main(): void {
  const args = process.argv.slice(2);
  const bundle = join(WORKSPACE, TASK_ADMIN);
  if (!existsSync(bundle)) throw new FriendlyError(`${TASK_ADMIN} is missing. Build it with: npm run build`);
  const child = spawn(process.execPath, ['--enable-source-maps', bundle, ...args], {
    stdio: 'inherit',
    env: { ...process.env, ...connections(args) },
  });
  child.on('exit', (code) => {
    process.exitCode = code ?? 1;
  });
}

try {
  main();
} catch (error) {
  if (!(error instanceof FriendlyError)) throw error;
  console.error(`✘ ${error.message}`);
  process.exitCode = 1;
}
