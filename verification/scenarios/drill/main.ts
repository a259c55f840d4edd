/**
 * `npm run drill`: backs a platform up under load, destroys it, restores it to an instant with the commands
 * of docs/operations.md, and audits it.
 */
import { commandLine, wholeNumber } from '#platform/command-line.ts';
import { FriendlyError } from '#platform/errors.ts';
import { findPsql } from '#platform/postgresql-client.ts';
import { cacheFolder } from '#platform/state-folder.ts';
import { drill } from '../drill.ts';
import { runScenario } from '../runner.ts';

runScenario(() => {
  const { seed } = commandLine(
    'npm run drill',
    '[-- flags]',
    'Takes a base backup of a platform under load, destroys its database, empties its broker, restores the platform to an instant with the commands of ' +
      'docs/operations.md, and compares it with what had been acknowledged at that instant. Needs psql. Exits with 1 if anything was lost or done twice.',
  )
    .option('--seed <number>', 'seed of the load', wholeNumber, 1)
    .parse()
    .opts<{ seed: number }>();
  if (findPsql(cacheFolder()) === null)
    throw new FriendlyError('psql is missing: .ci/install postgresql-client installs it.');
  return drill(seed);
});
