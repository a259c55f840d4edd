/**
 * `npm run drill`: backs a platform up under load, destroys it, restores it to an instant as
 * docs/operations.md says, and audits it.
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
    'Takes a base backup of a platform under load, destroys its database and empties its broker, restores it to an instant by the commands of ' +
      'docs/operations.md, and compares it with what had been acknowledged then. Needs psql. Ends with 1 when anything is lost or twice.',
  )
    .option('--seed <number>', 'what the load does', wholeNumber, 1)
    .parse()
    .opts<{ seed: number }>();
  if (findPsql(cacheFolder()) === null)
    throw new FriendlyError('psql is missing: .ci/install postgresql-client brings it.');
  return drill(seed);
});
