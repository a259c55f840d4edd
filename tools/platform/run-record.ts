import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isErrorCode } from './errors.ts';
import { isRunning, trySignal, type ProcessIdentity } from './processes.ts';
import { becomesTrue } from './waiting.ts';

const POLL_MS = 25;

/** A process group that must not outlive its supervisor. */
export interface RecordedProcess extends ProcessIdentity {
  readonly name: string;
  /** Processes stop in falling order of stage, those of one stage at once. */
  readonly stage: number;
  readonly signal: NodeJS.Signals;
  /** How long the orderly end may take before SIGKILL, in milliseconds. */
  readonly graceMs: number;
}

/**
 * What is running, on disk, so that whoever comes after a crash can clean up. It is also the lock: one per
 * state folder.
 */
export interface RunRecord {
  readonly supervisor: ProcessIdentity;
  readonly processes: readonly RecordedProcess[];
  /** A folder that goes when the run ends (private servers for one test run). */
  readonly removeFolder: string | null;
}

/** Stands for a record that a power failure cut short: nobody's, and nothing is known to run. */
const UNREADABLE: RunRecord = {
  supervisor: { pid: 0, start: 'unreadable' },
  processes: [],
  removeFolder: null,
};

/**
 * The record at `file`, or null when nothing runs. One that is not whole counts as that of a crashed run
 * without processes.
 */
export function findRunRecord(file: string): RunRecord | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as RunRecord;
  } catch (error) {
    if (isErrorCode(error, 'ENOENT')) return null;
    if (error instanceof SyntaxError) return UNREADABLE;
    throw error;
  }
}

/** Replaces the record in one step: a reader sees the old or the new one, never half. */
export function saveRunRecord(file: string, record: RunRecord): void {
  const next = `${file}.${process.pid}.next`;
  writeFileSync(next, JSON.stringify(record, null, 2), { mode: 0o644 });
  renameSync(next, file);
}

/** Claims `file` for `record`; false when there is a record already, of a live run or of one that crashed. */
export function claimRunRecord(file: string, record: RunRecord): boolean {
  const mine = `${file}.${process.pid}.claim`;
  writeFileSync(mine, JSON.stringify(record, null, 2), { mode: 0o644 });
  try {
    // A hard link fails when the name exists: claiming is one atomic step, unlike "look, then write".
    linkSync(mine, file);
    return true;
  } catch (error) {
    if (isErrorCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    rmSync(mine, { force: true });
  }
}

/** True while the supervisor of this record is alive. */
export function isSupervised(record: RunRecord): boolean {
  return isRunning(record.supervisor);
}

/**
 * Ends every process of a record, the last stage first: an orderly signal, then SIGKILL for the whole group
 * when the grace is over. Works from the record alone, so the supervisor, the reaper and the next start all
 * stop the same way.
 */
export async function stopProcesses(processes: readonly RecordedProcess[]): Promise<void> {
  const stages = [...new Set(processes.map((entry) => entry.stage))].sort((a, b) => b - a);
  for (const stage of stages) {
    await Promise.all(processes.filter((entry) => entry.stage === stage).map(stopProcess));
  }
}

async function stopProcess(entry: RecordedProcess): Promise<void> {
  if (!isRunning(entry)) return;
  // The orderly signal goes to the leader alone: PostgreSQL and RabbitMQ stop their own children in the right
  // order.
  trySignal(entry.pid, entry.signal);
  const hasEnded = (): boolean => !isRunning(entry);
  if (await becomesTrue(hasEnded, { timeoutMs: entry.graceMs, intervalMs: POLL_MS })) return;
  trySignal(-entry.pid, 'SIGKILL');
  await becomesTrue(hasEnded, { timeoutMs: Infinity, intervalMs: POLL_MS });
}

/** Stops what a record lists, and removes the folder it names and the record itself. */
export async function endRun(file: string, record: RunRecord): Promise<void> {
  await stopProcesses(record.processes);
  if (record.removeFolder) rmSync(record.removeFolder, { recursive: true, force: true, maxRetries: 5 });
  // The reaper and a new start may clean up at once: the slower one must not take the new start's record
  // away.
  if (findRunRecord(file)?.supervisor.start === record.supervisor.start) rmSync(file, { force: true });
}

/**
 * Cleans up after a run whose supervisor is gone. Returns the names of the processes it found still running.
 */
export async function sweepLeftovers(file: string): Promise<string[]> {
  const record = findRunRecord(file);
  if (record === null) return [];
  const alive = record.processes.filter((entry) => isRunning(entry)).map((entry) => entry.name);
  await endRun(file, record);
  return alive;
}
