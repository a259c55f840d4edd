import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, mkdirSync, openSync, renameSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { FriendlyError } from './friendly-error.ts';
import { lastLines } from './log-files.ts';
import { findProcessStart } from './process-identity.ts';
import type { RunAs } from './run-as.ts';
import { claimRunRecord, findRunRecord, isSupervised, saveRunRecord } from './run-record.ts';
import type { RecordedProcess, RunRecord } from './run-record.ts';
import { endRun, sweepLeftovers } from './stop-processes.ts';

/** What to run and how to end it. */
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

/** A running child. `ended` resolves with a sentence saying how it ended; it never rejects. */
export interface SupervisedProcess {
  readonly name: string;
  readonly pid: number;
  readonly logFile: string;
  readonly ended: Promise<string>;
  hasEnded(): boolean;
}

export interface SupervisorOptions {
  readonly recordFile: string;
  readonly logFolder: string;
  /** Goes when the run ends, crash or not. */
  readonly removeFolder?: string;
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
      containers: [],
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
    const supervised = { name: spec.name, pid: child.pid, logFile, ended, hasEnded: () => isOver(child) };
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

  /** True from the moment that somebody asked to stop. */
  get isStopping(): boolean {
    return this.#stopping !== null;
  }

  /** Also removes this Docker container when the run ends. */
  rememberContainer(name: string): void {
    this.#record = { ...this.#record, containers: [...this.#record.containers, name] };
    saveRunRecord(this.#options.recordFile, this.#record);
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

/** Says that `child` ended early, with the end of its log. */
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
