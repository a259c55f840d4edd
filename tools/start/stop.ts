/**
 * `npm run stop`: stops the platform of this checkout, however it was started, and cleans up after a crash.
 */
import { join } from 'node:path';
import { commandLine, runMain } from '#platform/command-line.ts';
import { FriendlyError, isErrorCode } from '#platform/errors.ts';
import { findRunRecord, isSupervised, sweepLeftovers } from '#platform/run-record.ts';
import { openStateFolder, WORKSPACE } from '#platform/state-folder.ts';
import { becomesTrue } from '#platform/waiting.ts';

async function stop(recordFile: string): Promise<string> {
  const record = findRunRecord(recordFile);
  if (record === null) return 'The platform of this checkout is not running.';
  if (!isSupervised(record)) {
    const names = await sweepLeftovers(recordFile);
    return names.length > 0
      ? `Stopped processes that a crash had left running: ${names.join(', ')}.`
      : 'Cleaned up after a crash.';
  }
  process.kill(record.supervisor.pid, 'SIGTERM');
  await becomesTrue(() => !isSupervised(record), { timeoutMs: Infinity });
  // If the supervisor was killed while stopping, its reaper or this process does the rest.
  await sweepLeftovers(recordFile);
  return 'Stopped.';
}

runMain(async () => {
  const description =
    'Stops the platform of this checkout, however it was started, and cleans up after a crash.';
  commandLine('npm run stop', '[-- --help]', description).parse();
  try {
    console.log(await stop(join(openStateFolder(WORKSPACE), 'run.json')));
  } catch (error) {
    if (!isErrorCode(error, 'EPERM')) throw error;
    throw new FriendlyError('The platform belongs to another user: stop it as that user.', { cause: error });
  }
});
