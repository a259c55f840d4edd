import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { FriendlyError } from './errors.ts';
import { isPortFree } from './ports.ts';
import { findProcessStart, trySignal } from './processes.ts';
import type { RunAs } from './run-as.ts';
import {
  claimRunRecord,
  endRun,
  findRunRecord,
  isSupervised,
  type RecordedProcess,
  type RunRecord,
  saveRunRecord,
  sweepLeftovers,
} from './run-record.ts';
import { becomesTrue } from './waiting.ts';

const TAIL_BYTES = 64 * 1024;

export interface ProcessSpec {
  readonly name: string;
  readonly stage: number;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly runAs?: RunAs | null;
  readonly signal?: NodeJS.Signals;
  readonly graceMs?: number;
  /** A command that is expected to end by itself. */
  readonly oneShot?: boolean;
}

export interface SupervisedProcess {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  /** Resolves with a sentence saying how it ended; never rejects. */
  readonly ended: Promise<string>;
  hasEnded(): boolean;
  /** Null while it runs, and when a signal ended it. */
  exitCode(): number | null;
}

export interface SupervisorOptions {
  readonly recordFile: string;
  readonly logFolder: string;
  /** Goes when the run ends, crash or not. */
  readonly removeFolder?: string;
}

/** What private servers are made in. */
export interface ServerPlace {
  readonly supervisor: Supervisor;
  /** Holds their data. */
  readonly folder: string;
  /** Holds their programs where they had to be fetched or copied. */
  readonly cacheFolder: string;
  readonly runAs: RunAs | null;
  /** The secret of this name: made when first asked for, the same ever after. */
  readonly secret: (name: string) => string;
}

/** Starts processes in groups of their own and sees to it that none outlives this process (see reaper.ts). */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #reaper: ChildProcess;
  readonly #children = new Map<string, SupervisedProcess>();
  #record: RunRecord;
  #stopping: Promise<void> | null = null;
  /** Called when a process ends that nobody asked to end. */
  onUnexpectedEnd: (child: SupervisedProcess, how: string) => void = () => undefined;

  private constructor(options: SupervisorOptions, record: RunRecord) {
    this.#options = options;
    this.#record = record;
    this.#reaper = spawn(process.execPath, [join(import.meta.dirname, 'reaper.ts'), options.recordFile], {
      cwd: '/',
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    this.#reaper.unref();
  }

  /**
   * Claims the run record, after cleaning up what a crashed run left behind.
   * @throws {FriendlyError} when another run is alive.
   */
  static async open(options: SupervisorOptions): Promise<Supervisor> {
    const record: RunRecord = {
      supervisor: { pid: process.pid, start: findProcessStart(process.pid) ?? '' },
      processes: [],
      removeFolder: options.removeFolder ?? null,
    };
    mkdirSync(options.logFolder, { recursive: true });
    mkdirSync(dirname(options.recordFile), { recursive: true });
    while (!claimRunRecord(options.recordFile, record)) {
      const other = findRunRecord(options.recordFile);
      if (other !== null && isSupervised(other)) {
        throw new FriendlyError(
          `This checkout's platform is already running (process ${other.supervisor.pid}). Stop it with: npm run stop`,
        );
      }
      await sweepLeftovers(options.recordFile);
    }
    return new Supervisor(options, record);
  }

  /** @throws {FriendlyError} when the program cannot be started at all. */
  async spawn(spec: ProcessSpec): Promise<SupervisedProcess> {
    if (this.#stopping) throw new FriendlyError('The platform is stopping.');
    const logFile = join(this.#options.logFolder, `${spec.name}.log`);
    // The log before a crash is the interesting one: keep one generation.
    if (existsSync(logFile)) renameSync(logFile, logFile.replace(/\.log$/, '.previous.log'));
    const log = openSync(logFile, 'a');
    const child = spawn(spec.command, [...spec.args], {
      cwd: spec.cwd,
      env: spec.env,
      detached: true, // a process group of its own: Ctrl-C reaches us alone and we stop the rest in order
      stdio: ['ignore', log, log],
      ...(spec.runAs ? { uid: spec.runAs.uid, gid: spec.runAs.gid } : {}),
    });
    closeSync(log);
    const ended = whenEnded(child);
    if (child.pid === undefined) throw new FriendlyError(`Cannot start ${spec.name}: ${await ended}`);
    this.#remember({
      name: spec.name,
      pid: child.pid,
      start: findProcessStart(child.pid) ?? '',
      stage: spec.stage,
      signal: spec.signal ?? 'SIGTERM',
      graceMs: spec.graceMs ?? 10_000,
    });
    const supervised: SupervisedProcess = {
      name: spec.name,
      pid: child.pid,
      logFile,
      ended,
      hasEnded: () => isOver(child),
      exitCode: () => child.exitCode,
    };
    this.#children.set(spec.name, supervised);
    if (!spec.oneShot) this.#reportEnd(supervised);
    return supervised;
  }

  /**
   * Runs a command to its end.
   * @throws {FriendlyError} with the end of its output when it fails.
   */
  async run(spec: ProcessSpec): Promise<void> {
    const child = await this.spawn({ ...spec, oneShot: true });
    const how = await child.ended;
    if (how !== SUCCEEDED) throw endedEarly(child, how);
  }

  /** The process last started under this name, ended or not; null when there was none. */
  find(name: string): SupervisedProcess | null {
    return this.#children.get(name) ?? null;
  }

  /** The process that runs under this name. @throws {Error} when none does */
  running(name: string): SupervisedProcess {
    const found = this.find(name);
    if (found === null || found.hasEnded()) throw new Error(`${name} is not running`);
    return found;
  }

  /** True from the moment that somebody asked to stop. */
  get isStopping(): boolean {
    return this.#stopping !== null;
  }

  /** Stops everything in order and gives the lock back. Safe to call again. */
  stop(): Promise<void> {
    this.#stopping ??= endRun(this.#options.recordFile, this.#record).then(() => this.#dismissReaper());
    return this.#stopping;
  }

  async #dismissReaper(): Promise<void> {
    if (isOver(this.#reaper)) return;
    const ended = once(this.#reaper, 'exit');
    this.#reaper.ref(); // or this process may run out of things to wait for, and end in the middle
    this.#reaper.stdin?.destroy();
    await ended;
  }

  #remember(entry: RecordedProcess): void {
    this.#record = { ...this.#record, processes: [...this.#record.processes, entry] };
    saveRunRecord(this.#options.recordFile, this.#record);
  }

  #reportEnd(child: SupervisedProcess): void {
    void child.ended.then((how) => {
      if (!this.#stopping) this.onUnexpectedEnd(child, how);
    });
  }
}

/**
 * Ends a server that is to be started again. @param ports that it listens on: a process that it had begun may
 * keep them a moment longer
 */
export async function endProcess(
  supervisor: Supervisor,
  name: string,
  signal: NodeJS.Signals,
  ports: readonly number[],
): Promise<void> {
  const child = supervisor.running(name);
  // In order it ends its own children; killed, they go with it, as with the power.
  trySignal(signal === 'SIGKILL' ? -child.pid : child.pid, signal);
  await child.ended;
  for (const port of ports)
    if (!(await becomesTrue(() => isPortFree(port))))
      throw new Error(`${name} has ended, but port ${port} is still taken`);
}

/** Says that `child` failed, and how, with the end of its log. */
export function endedEarly(child: SupervisedProcess, how: string): FriendlyError {
  return new FriendlyError(
    `${child.name} ${how}. Its last log lines (${child.logFile}):\n${lastLines(child.logFile, 20)}`,
  );
}

const SUCCEEDED = 'ended with exit code 0';

function isOver(child: ChildProcess): boolean {
  return child.exitCode !== null || child.signalCode !== null;
}

function whenEnded(child: ChildProcess): Promise<string> {
  return new Promise((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('exit', (code, signal) =>
      resolve(signal ? `was ended by ${signal}` : `ended with exit code ${code ?? 'unknown'}`),
    );
  });
}

/**
 * Waits until `probe` succeeds for `child`.
 * @throws {FriendlyError} with the end of its log when the child ends first or `timeoutMs` is over.
 */
export async function waitUntilReady(
  child: SupervisedProcess,
  probe: () => Promise<boolean>,
  timeoutMs: number,
  intervalMs = 50,
): Promise<void> {
  const isReady = async (): Promise<boolean> => {
    if (await probe()) return true;
    if (child.hasEnded()) throw endedEarly(child, await child.ended);
    return false;
  };
  if (!(await becomesTrue(isReady, { timeoutMs, intervalMs })))
    throw endedEarly(child, `was not ready within ${timeoutMs / 1000} s`);
}

/** The last `count` lines of a file (of its last 64 KiB), or why it cannot be read. */
function lastLines(file: string, count: number): string {
  let handle: number;
  try {
    handle = openSync(file, 'r');
  } catch (error) {
    return error instanceof Error ? error.message : '';
  }
  try {
    const { size } = fstatSync(handle);
    const buffer = Buffer.alloc(Math.min(size, TAIL_BYTES));
    readSync(handle, buffer, 0, buffer.length, size - buffer.length);
    return buffer.toString('utf8').trimEnd().split('\n').slice(-count).join('\n');
  } finally {
    closeSync(handle);
  }
}
