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
  /** Whether the command is expected to end by itself. */
  readonly oneShot?: boolean;
}

export interface SupervisedProcess {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  /** Resolves with a phrase that says how it ended; never rejects. */
  readonly ended: Promise<string>;
  hasEnded(): boolean;
  /** Null while it runs, and if a signal ended it. */
  exitCode(): number | null;
}

export interface SupervisorOptions {
  readonly recordFile: string;
  readonly logFolder: string;
  /** Deleted when the run ends, crash or not. */
  readonly removeFolder?: string;
}

/** Folders, account, supervisor and secrets of private servers. */
export interface ServerPlace {
  readonly supervisor: Supervisor;
  /** Folder of their data. */
  readonly folder: string;
  /** Folder of their programs, if these had to be downloaded or copied. */
  readonly cacheFolder: string;
  readonly runAs: RunAs | null;
  /** Returns the secret of this name; created at first use, it never changes. */
  readonly secret: (name: string) => string;
}

/**
 * Starts processes in their own process groups, and ensures that none outlives this process (see reaper.ts).
 */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #reaper: ChildProcess;
  readonly #children = new Map<string, SupervisedProcess>();
  #record: RunRecord;
  #stopping: Promise<void> | null = null;
  /** Called when a process ends although no stop was requested. */
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
   * Claims the run record, after cleaning up after a crashed run.
   * @throws {FriendlyError} if another run is alive.
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

  /** @throws {FriendlyError} if the program cannot be started at all. */
  async spawn(spec: ProcessSpec): Promise<SupervisedProcess> {
    if (this.#stopping) throw new FriendlyError('The platform is stopping.');
    const logFile = join(this.#options.logFolder, `${spec.name}.log`);
    // Keeps one previous log: after a crash, that is the interesting one.
    if (existsSync(logFile)) renameSync(logFile, logFile.replace(/\.log$/, '.previous.log'));
    const log = openSync(logFile, 'a');
    const child = spawn(spec.command, [...spec.args], {
      cwd: spec.cwd,
      env: spec.env,
      detached: true, // own process group: Ctrl-C reaches only this process, which stops the others in order
      stdio: ['ignore', log, log],
      ...(spec.runAs ? { uid: spec.runAs.uid, gid: spec.runAs.gid } : {}),
    });
    closeSync(log);
    const ended = whenEnded(child);
    if (child.pid === undefined) throw new FriendlyError(`Cannot start ${spec.name}: ${await ended}`);
    this.#recordProcess({
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
   * @throws {FriendlyError} with the end of its output if it fails.
   */
  async run(spec: ProcessSpec): Promise<void> {
    const child = await this.spawn({ ...spec, oneShot: true });
    const how = await child.ended;
    if (how !== SUCCEEDED) throw endedEarly(child, how);
  }

  /** Returns the process last started under this name, ended or not; null if there was none. */
  find(name: string): SupervisedProcess | null {
    return this.#children.get(name) ?? null;
  }

  /** Returns the running process of this name. @throws {Error} if there is none */
  running(name: string): SupervisedProcess {
    const found = this.find(name);
    if (found === null || found.hasEnded()) throw new Error(`${name} is not running`);
    return found;
  }

  /** Whether a stop was requested. */
  get isStopping(): boolean {
    return this.#stopping !== null;
  }

  /** Stops all processes in order and releases the run record. Safe to call again. */
  stop(): Promise<void> {
    this.#stopping ??= endRun(this.#options.recordFile, this.#record).then(() => this.#dismissReaper());
    return this.#stopping;
  }

  async #dismissReaper(): Promise<void> {
    if (isOver(this.#reaper)) return;
    const ended = once(this.#reaper, 'exit');
    this.#reaper.ref(); // keeps this process alive until the reaper has ended
    this.#reaper.stdin?.destroy();
    await ended;
  }

  #recordProcess(entry: RecordedProcess): void {
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
 * Ends a server that is to be started again, and waits until its ports are free.
 * @param ports of the server; one of its children may hold them a moment longer
 */
export async function endProcess(
  supervisor: Supervisor,
  name: string,
  signal: NodeJS.Signals,
  ports: readonly number[],
): Promise<void> {
  const child = supervisor.running(name);
  // With an orderly signal the server ends its own children. SIGKILL goes to the whole group, as if the power
  // failed.
  trySignal(signal === 'SIGKILL' ? -child.pid : child.pid, signal);
  await child.ended;
  for (const port of ports)
    if (!(await becomesTrue(() => isPortFree(port))))
      throw new Error(`${name} has ended, but port ${port} is still in use`);
}

/** Returns an error that says how `child` failed, with the end of its log. */
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
 * @throws {FriendlyError} with the end of its log if the child ends first or `timeoutMs` has passed.
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

/** Returns the last `count` lines of a file (from its last 64 KiB), or the reason why it cannot be read. */
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
