import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { basename, dirname } from 'node:path';
import { COMPILE_CACHE } from '#platform/state-folder.ts';
import { eventually } from '#platform/waiting.ts';
import { TRAFFIC_RECORDER, recordedLog, recordingFolder } from './recording';
import { watchOutput } from './watch-log';

export interface RunningProcess {
  child: ChildProcess;
  /** Returns all output so far, standard output and standard error together. */
  output(): string;
  /** Resolves to the exit code; null if a signal ended the process. */
  exited: Promise<number | null>;
  /** Sends a signal (default SIGTERM) and waits until the process ends. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

export interface ProcessOptions {
  /** Path of the program, e.g. `dist/apps/task-service/main.js`. */
  entry: string;
  args?: readonly string[];
  /**
   * Environment of the process, in addition to PATH, HOME and Node's compile cache. No other variable of this
   * process is passed on.
   */
  env: Readonly<Record<string, string>>;
  /** URL to poll until it responds with 200. */
  readyUrl?: string;
  timeoutMs?: number;
  /**
   * True if the output is meant for the caller and may contain a secret, so that it is not recorded as a log.
   */
  answers?: boolean;
}

/**
 * Starts a Node program as a child process and waits until it is ready. Its log is checked as by `watchLog`.
 * @throws {Error} with its output if it ends or does not become ready in time
 */
export async function runProcess(options: ProcessOptions): Promise<RunningProcess> {
  const { entry, args = [], env, readyUrl, timeoutMs = 60_000 } = options;
  const { PATH = '', HOME = '' } = process.env;
  const recording = recordingOf(options);
  const child = spawn(process.execPath, [...recording.nodeOptions, entry, ...args], {
    env: { PATH, HOME, NODE_COMPILE_CACHE: COMPILE_CACHE, ...recording.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let written = '';
  for (const stream of [child.stdout, child.stderr]) {
    const watch = watchOutput();
    stream.on('data', (chunk: Buffer) => {
      written += chunk.toString();
      recording.log(chunk);
      watch(chunk.toString());
    });
  }
  // Not 'exit', because the last output may arrive after it.
  const exited = once(child, 'close').then(([code]) => code as number | null);
  const running: RunningProcess = {
    child,
    output: () => written,
    exited,
    stop: (signal = 'SIGTERM') => {
      child.kill(signal);
      return exited;
    },
  };
  if (readyUrl === undefined) return running;
  try {
    await eventually(() => assertReady(running, readyUrl), { timeoutMs });
  } catch (error) {
    child.kill('SIGKILL');
    throw new Error(`${entry} did not become ready:\n${written}`, { cause: error });
  }
  return running;
}

/**
 * Runs a tool of this workspace to its end and returns its output.
 * @throws {Error} with its output if it ends with another code than 0, or not within `timeoutMs`
 */
export async function runTool(options: ProcessOptions & { timeoutMs: number }): Promise<string> {
  const { entry, timeoutMs } = options;
  const running = await runProcess(options);
  try {
    const timedOut = once(AbortSignal.timeout(timeoutMs), 'abort').then(() => 'timed out' as const);
    const exitCode = await Promise.race([running.exited, timedOut]);
    // The error contains the whole output; an assertion would show only the lines around a difference.
    if (exitCode !== 0) throw new Error(`${entry} ended with ${exitCode}:\n${running.output()}`);
    return running.output();
  } finally {
    await running.stop();
  }
}

/** Returns the options that include a process in the recording of its test run, if there is one. */
function recordingOf({ entry, answers = false }: ProcessOptions): {
  nodeOptions: string[];
  env: Record<string, string>;
  log: (chunk: Buffer) => void;
} {
  const folder = recordingFolder();
  const program = `${basename(dirname(entry))}-${basename(entry)}-of-${process.pid}`;
  return {
    nodeOptions: folder === undefined ? [] : ['--require', TRAFFIC_RECORDER],
    env: folder === undefined ? {} : { TEST_RECORDING_FOLDER: folder },
    log: answers ? () => undefined : recordedLog(program),
  };
}

async function assertReady({ child }: RunningProcess, readyUrl: string): Promise<void> {
  // An ended process never becomes ready. The polling still continues until its timeout.
  if (child.exitCode !== null) throw new Error(`ended with code ${child.exitCode}`);
  const response = await fetch(readyUrl);
  await response.arrayBuffer();
  if (response.status !== 200) throw new Error(`not ready: status ${response.status}`);
}
