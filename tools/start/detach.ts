import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { onEndSignal } from '#platform/command-line.ts';

const POLL_MS = 100;
/** Tells the child that it is the detached one. */
export const DETACHED_VARIABLE = 'PLATFORM_DETACHED';

/**
 * Starts the platform in a process of its own that outlives this one and the terminal, shows its progress, and returns when it
 * is ready: exit code 0, or that of the start that failed.
 */
export async function startDetached(
  script: string,
  args: readonly string[],
  stateFolder: string,
): Promise<number> {
  const logFile = join(stateFolder, 'start.log');
  const log = openSync(logFile, 'w');
  // Output goes to a file and not through a pipe: nobody would read the pipe once we have returned.
  const child = spawn(process.execPath, [script, ...args], {
    detached: true,
    env: { ...process.env, [DETACHED_VARIABLE]: '1' },
    stdio: ['ignore', log, log, 'ipc'],
  });
  closeSync(log);
  let shown = 0;
  const show = (): void => {
    const text = readFileSync(logFile, 'utf8');
    process.stdout.write(text.slice(shown));
    shown = text.length;
  };
  const timer = setInterval(show, POLL_MS);
  onEndSignal((signal) => child.kill(signal));
  const code = await new Promise<number>((resolve) => {
    child.once('message', () => resolve(0));
    child.once('exit', (exitCode) => resolve(exitCode ?? 1));
    child.once('error', () => resolve(1));
  });
  clearInterval(timer);
  show();
  if (child.connected) child.disconnect();
  child.unref();
  return code;
}
