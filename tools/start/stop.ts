/** `npm run stop`: stops the platform of this checkout, however it was started, and cleans up after a crash. */
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { isErrorCode } from '#platform/process-identity.ts';
import { findRunRecord, isSupervised } from '#platform/run-record.ts';
import { openStateFolder } from '#platform/state-folder.ts';
import { sweepLeftovers } from '#platform/stop-processes.ts';

const RECORD = join(openStateFolder(join(import.meta.dirname, '../..')), 'run.json');
const POLL_MS = 100;

async function stop(): Promise<string> {
  const record = findRunRecord(RECORD);
  if (record === null) return 'The platform of this checkout is not running.';
  if (!isSupervised(record)) {
    const names = await sweepLeftovers(RECORD);
    return names.length > 0
      ? `Stopped what a crash had left running: ${names.join(', ')}.`
      : 'Cleaned up after a crash.';
  }
  process.kill(record.supervisor.pid, 'SIGTERM');
  while (isSupervised(record)) await delay(POLL_MS);
  // The supervisor was killed while it stopped things: its reaper or we do the rest.
  await sweepLeftovers(RECORD);
  return 'Stopped.';
}

stop().then(
  (sentence) => console.log(sentence),
  (error: unknown) => {
    console.error(
      isErrorCode(error, 'EPERM') ? '✘ The platform belongs to another user: stop it as that user.' : error,
    );
    process.exitCode = 1;
  },
);
