import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { isErrorCode, isRunning, type ProcessIdentity } from './process-identity.ts';

/** A process group that must not outlive its supervisor. */
export interface RecordedProcess extends ProcessIdentity {
  readonly name: string;
  /** Processes stop in falling order of stage, those of one stage at once. */
  readonly stage: number;
  /** The signal that asks for an orderly end. */
  readonly signal: NodeJS.Signals;
  /** How long the orderly end may take before SIGKILL, in milliseconds. */
  readonly graceMs: number;
}

/** What is running, on disk, so that whoever comes after a crash can clean up. It is also the lock: one per state folder. */
export interface RunRecord {
  readonly supervisor: ProcessIdentity;
  readonly processes: readonly RecordedProcess[];
  /** Docker containers by name. */
  readonly containers: readonly string[];
  /** A folder that goes when the run ends (private servers for one test run). */
  readonly removeFolder: string | null;
}

/** Stands for a record that a power failure cut short: nobody's, and nothing is known to run. */
const UNREADABLE: RunRecord = {
  supervisor: { pid: 0, start: 'unreadable' },
  processes: [],
  containers: [],
  removeFolder: null,
};

/** The record at `file`, or null when nothing runs. One that is not whole counts as that of a crashed run without processes. */
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
