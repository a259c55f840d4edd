import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isErrorCode } from './errors.ts';
import { isRunning, trySignal, type ProcessIdentity } from './processes.ts';
import { becomesTrue } from './waiting.ts';

const POLL_MS = 25;

/** A process group that must not outlive its supervisor. */
export interface RecordedProcess extends ProcessIdentity {
  readonly name: string;
  /** Processes stop in descending order of stage, those of one stage concurrently. */
  readonly stage: number;
  readonly signal: NodeJS.Signals;
  /** Time in ms for an orderly end before SIGKILL. */
  readonly graceMs: number;
}

/**
 * The running processes, on disk, so that a later process can clean up after a crash. The record is also a
 * lock: there is one per state folder.
 */
export interface RunRecord {
  readonly supervisor: ProcessIdentity;
  readonly processes: readonly RecordedProcess[];
  /** A folder that is deleted when the run ends (private servers of one test run). */
  readonly removeFolder: string | null;
}

/**
 * Used in place of a record that a power failure cut short: it has no living supervisor and no known
 * processes.
 */
const UNREADABLE: RunRecord = {
  supervisor: { pid: 0, start: 'unreadable' },
  processes: [],
  removeFolder: null,
};

/**
 * Returns the record at `file`, or null if nothing runs. An incomplete record counts as that of a crashed run
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

/** Replaces the record atomically: a reader sees the old or the new one, never a part. */
export function saveRunRecord(file: string, record: RunRecord): void {
  const next = `${file}.${process.pid}.next`;
  writeFileSync(next, JSON.stringify(record, null, 2), { mode: 0o644 });
  renameSync(next, file);
}

/**
 * Claims `file` for `record`. Returns false if there already is a record, of a live run or of a crashed one.
 */
export function claimRunRecord(file: string, record: RunRecord): boolean {
  const mine = `${file}.${process.pid}.claim`;
  writeFileSync(mine, JSON.stringify(record, null, 2), { mode: 0o644 });
  try {
    // Creating a hard link fails if the name exists, so claiming is one atomic step.
    linkSync(mine, file);
    return true;
  } catch (error) {
    if (isErrorCode(error, 'EEXIST')) return false;
    throw error;
  } finally {
    rmSync(mine, { force: true });
  }
}

/** Whether the supervisor of this record is alive. */
export function isSupervised(record: RunRecord): boolean {
  return isRunning(record.supervisor);
}

/**
 * Ends every process of a record, the highest stage first: with its orderly signal, then, after its grace
 * period, with SIGKILL to the whole group. It uses only the record, so that the supervisor, the reaper and
 * the next start all stop in the same way.
 */
export async function stopProcesses(processes: readonly RecordedProcess[]): Promise<void> {
  const stages = [...new Set(processes.map((entry) => entry.stage))].sort((a, b) => b - a);
  for (const stage of stages) {
    await Promise.all(processes.filter((entry) => entry.stage === stage).map(stopProcess));
  }
}

async function stopProcess(entry: RecordedProcess): Promise<void> {
  if (!isRunning(entry)) return;
  // The orderly signal goes only to the leader of the group: PostgreSQL and RabbitMQ stop their own children
  // in the right order.
  trySignal(entry.pid, entry.signal);
  const hasEnded = (): boolean => !isRunning(entry);
  if (await becomesTrue(hasEnded, { timeoutMs: entry.graceMs, intervalMs: POLL_MS })) return;
  trySignal(-entry.pid, 'SIGKILL');
  await becomesTrue(hasEnded, { timeoutMs: Infinity, intervalMs: POLL_MS });
}

/** Stops the processes of a record, and deletes the folder that it names and the record itself. */
export async function endRun(file: string, record: RunRecord): Promise<void> {
  await stopProcesses(record.processes);
  if (record.removeFolder) rmSync(record.removeFolder, { recursive: true, force: true, maxRetries: 5 });
  // The reaper and a new start may clean up concurrently: the slower one must not delete the new start's
  // record.
  if (findRunRecord(file)?.supervisor.start === record.supervisor.start) rmSync(file, { force: true });
}

/**
 * Cleans up after a run whose supervisor has ended. Returns the names of the processes that were still
 * running.
 */
export async function sweepLeftovers(file: string): Promise<string[]> {
  const record = findRunRecord(file);
  if (record === null) return [];
  const alive = record.processes.filter((entry) => isRunning(entry)).map((entry) => entry.name);
  await endRun(file, record);
  return alive;
}
