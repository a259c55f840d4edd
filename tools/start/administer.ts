/**
 * `npm run auth:admin -- …`, `npm run settings:admin -- …` and `npm run task:admin -- …`: runs a service's
 * administration command line on the running platform of this checkout. Elsewhere, `node admin.js` in the
 * service's image does the same with the variables of its environment.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Argument } from 'commander';
import { commandLine, runMain } from '#platform/command-line.ts';
import { readAdministration } from '#platform/environments.ts';
import { FriendlyError } from '#platform/errors.ts';
import { SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import { findRunRecord, isSupervised } from '#platform/run-record.ts';
import { openStateFolder, type Variables, WORKSPACE } from '#platform/state-folder.ts';

/**
 * Returns the variables of the running platform, because those saved by a stopped one are of no use. Returns
 * none if no platform runs and only the help is requested.
 * @throws {FriendlyError} if no platform runs, except for help
 */
function environment(service: ServiceName, args: readonly string[]): Variables {
  const stateFolder = openStateFolder(WORKSPACE);
  const record = findRunRecord(join(stateFolder, 'run.json'));
  const isUp = record !== null && isSupervised(record);
  const variables = isUp ? readAdministration(stateFolder, service) : {};
  if (Object.keys(variables).length === 0 && args.length > 0 && !args.some(isHelp))
    throw new FriendlyError('No platform runs from this checkout. Start it with: npm start');
  return variables;
}

function isHelp(word: string): boolean {
  return word === '--help' || word === '-h' || word === 'help';
}

function administer(service: ServiceName, args: readonly string[]): void {
  const bundle = `dist/apps/${service}-service/admin.js`;
  if (!existsSync(join(WORKSPACE, bundle)))
    throw new FriendlyError(`${bundle} is missing. Build it with: npm run build`);
  const child = spawn(process.execPath, [bundle, ...args], {
    cwd: WORKSPACE,
    env: { ...process.env, ...environment(service, args) },
    stdio: 'inherit',
  });
  child.once('error', (error) => {
    throw error;
  });
  child.once('exit', (code) => {
    process.exitCode = code ?? 1;
  });
}

runMain(() => {
  // Everything after the service's name, help included, is passed to the service's own program.
  const command = commandLine(
    'tools/start/administer.ts',
    '<service> …',
    "A service's administration command line.",
  )
    .helpOption(false)
    .addArgument(new Argument('<service>').choices(SERVICE_NAMES))
    .argument('[arguments...]')
    .passThroughOptions()
    .allowUnknownOption()
    .parse();
  administer(...(command.processedArgs as [ServiceName, string[]]));
});
