/** `npm run auth:admin`: the auth service's administration command line, on the platform that this checkout runs. */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { FriendlyError } from '#infrastructure/friendly-error.ts';
import { findRunRecord, isSupervised } from '#infrastructure/run-record.ts';
import { openStateFolder } from '#infrastructure/state-folder.ts';
import { readAdministration } from './administration.ts';
import type { Variables } from './environments.ts';

const WORKSPACE = join(import.meta.dirname, '../..');
const BUNDLE = join(WORKSPACE, 'dist/apps/auth-service/admin.js');

/** Only of a platform that is up: what a stopped one noted leads nowhere. */
function environment(stateFolder: string): Variables {
  const record = findRunRecord(join(stateFolder, 'run.json'));
  const isUp = record !== null && isSupervised(record);
  return isUp ? readAdministration(stateFolder) : {};
}

function requirePlatform(variables: Variables, args: readonly string[]): void {
  if (Object.keys(variables).length > 0 || args.length === 0 || args.some(isHelp)) return;
  throw new FriendlyError('The platform of this checkout is not running: start it with npm start first.');
}

function isHelp(word: string): boolean {
  return word === '--help' || word === '-h' || word === 'help';
}

function administer(args: readonly string[]): void {
  if (!existsSync(BUNDLE))
    throw new FriendlyError('The auth service has not been built yet: npm start builds and starts it.');
  const variables = environment(openStateFolder(WORKSPACE));
  requirePlatform(variables, args);
  const child = spawn(process.execPath, ['--enable-source-maps', BUNDLE, ...args], {
    cwd: WORKSPACE,
    env: { ...process.env, ...variables },
    stdio: 'inherit',
  });
  child.once('error', (error) => {
    throw error;
  });
  child.once('exit', (code) => {
    process.exitCode = code ?? 1;
  });
}

try {
  administer(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof FriendlyError ? `✘ ${error.message}` : error);
  process.exitCode = 1;
}
