/** `npm start`: starts the whole platform, keeps it running until Ctrl-C, and stops it in order. */
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { complain, onEndSignal, runMain } from '#platform/command-line.ts';
import { addressVariables } from '#platform/environments.ts';
import { openStateFolder, saveRunningAddresses, WORKSPACE } from '#platform/state-folder.ts';
import { endedEarly, Supervisor } from '#platform/supervisor.ts';
import { parseStartArguments, type StartArguments } from './arguments.ts';
import { readExternalServers } from './external-servers.ts';
import { guide, followLogs, Progress } from './terminal.ts';
import { restartService, type StartContext, startPlatform, isServed, servingEnded } from './platform.ts';

const POLL_MS = 100;
/** Marks the child process of a detached start. */
const DETACHED_VARIABLE = 'PLATFORM_DETACHED';

/**
 * Starts the platform in a detached process that outlives this one and the terminal, and shows its progress.
 * Returns 0 when it is ready, or the exit code of a failed start.
 */
async function startDetached(script: string, args: readonly string[], stateFolder: string): Promise<number> {
  const logFile = join(stateFolder, 'start.log');
  const log = openSync(logFile, 'w');
  // Output goes to a file, because a pipe would have no reader once this process has ended.
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

const PARENT_POLL_MS = 500;

async function main(): Promise<void> {
  const args = parseStartArguments(process.argv.slice(2));
  const stateFolder = openStateFolder(WORKSPACE);
  if (args.detach && process.env[DETACHED_VARIABLE] === undefined) {
    process.exitCode = await startDetached(import.meta.filename, process.argv.slice(2), stateFolder);
    return;
  }
  delete process.env[DETACHED_VARIABLE];
  await run(args, stateFolder);
}

async function run(args: StartArguments, stateFolder: string): Promise<void> {
  const external = readExternalServers(process.env);
  const progress = new Progress();
  const logFolder = join(stateFolder, 'logs');
  const supervisor = await Supervisor.open({ recordFile: join(stateFolder, 'run.json'), logFolder });
  const stopFollowing = args.verbose ? followLogs(logFolder, (line) => progress.line(line)) : () => undefined;
  const end = async (exitCode: number): Promise<void> => {
    await supervisor.stop();
    stopFollowing();
    process.exit(exitCode);
  };
  onEndSignal((signal) => {
    // A closed terminal cannot be written to, and a second signal changes nothing.
    if (signal !== 'SIGHUP' && !supervisor.isStopping) progress.line('▸ Stopping …');
    void end(0);
  });
  if (!args.detach) endWithParent(end);
  const context = { stateFolder, args, external, supervisor, progress };
  const fail = (error: unknown): void => {
    // While the platform stops, failures are expected.
    if (supervisor.isStopping) return;
    complain(error);
    void end(1);
  };
  supervisor.onUnexpectedEnd = (child, how) => {
    if (isServed(stateFolder, child.name)) yieldToServe(context, child.name).catch(fail);
    else fail(endedEarly(child, how));
  };
  try {
    await startPlatform(context);
  } catch (error) {
    return fail(error);
  }
  announceReady(args, stateFolder, progress);
}

/** Waits while `nx serve` replaces a service, then starts the service again. */
async function yieldToServe(context: StartContext, name: string): Promise<void> {
  context.progress.line(`▸ ${name} is served by nx serve`);
  await servingEnded(context.stateFolder, name);
  if (!context.supervisor.isStopping) await restartService(context, name);
}

/**
 * Calls `end` with 1 when the parent process has ended, because a killed parent cannot forward its signal.
 */
function endWithParent(end: (code: number) => Promise<void>): void {
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    void end(1);
  }, PARENT_POLL_MS);
  timer.unref();
}

function announceReady(args: StartArguments, stateFolder: string, progress: Progress): void {
  if (!args.infrastructureOnly) {
    saveRunningAddresses(stateFolder, addressVariables(args.ports));
    progress.line(guide(args.ports, stateFolder));
  }
  const how = args.detach ? 'Stop it with: npm run stop' : 'Ctrl-C stops it.';
  progress.line(`Ready after ${progress.total()}. ${how}`);
  // The launcher of a detached start waits for this message.
  process.send?.('ready');
  // Keeps this process alive.
  setInterval(() => undefined, 2 ** 30);
}

runMain(main);
