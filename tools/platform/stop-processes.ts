import { execFileSync } from 'node:child_process';
import { rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { isErrorCode, isRunning } from './process-identity.ts';
import { findRunRecord, type RecordedProcess, type RunRecord } from './run-record.ts';

const POLL_MS = 25;

/**
 * Ends every process of a record, the last stage first: an orderly signal, then SIGKILL for the whole group when the
 * grace is over. Works from the record alone, so the supervisor, the reaper and the next start all stop the same way.
 */
export async function stopProcesses(processes: readonly RecordedProcess[]): Promise<void> {
  const stages = [...new Set(processes.map((entry) => entry.stage))].sort((a, b) => b - a);
  for (const stage of stages) {
    await Promise.all(processes.filter((entry) => entry.stage === stage).map(stopProcess));
  }
}

async function stopProcess(entry: RecordedProcess): Promise<void> {
  if (!isRunning(entry)) return;
  // The orderly signal goes to the leader alone: PostgreSQL and RabbitMQ stop their own children in the right order.
  sendSignal(entry.pid, entry.signal);
  const deadline = performance.now() + entry.graceMs;
  while (isRunning(entry) && performance.now() < deadline) await delay(POLL_MS);
  if (isRunning(entry)) sendSignal(-entry.pid, 'SIGKILL');
  while (isRunning(entry)) await delay(POLL_MS);
}

function sendSignal(target: number, signal: NodeJS.Signals): void {
  try {
    process.kill(target, signal);
  } catch (error) {
    // It ended by itself in the meantime.
    if (!isErrorCode(error, 'ESRCH')) throw error;
  }
}

/** Stops what a record lists, containers included, and removes the folder it names and the record itself. */
export async function endRun(file: string, record: RunRecord): Promise<void> {
  await stopProcesses(record.processes);
  for (const container of record.containers) {
    execFileSync('docker', ['rm', '--force', container], { stdio: 'ignore' });
  }
  if (record.removeFolder) rmSync(record.removeFolder, { recursive: true, force: true, maxRetries: 5 });
  // The reaper and a new start may clean up at once: the slower one must not take the new start's record away.
  if (findRunRecord(file)?.supervisor.start === record.supervisor.start) rmSync(file, { force: true });
}

/** Cleans up after a run whose supervisor is gone. Returns the names of the processes it found still running. */
export async function sweepLeftovers(file: string): Promise<string[]> {
  const record = findRunRecord(file);
  if (record === null) return [];
  const alive = record.processes.filter((entry) => isRunning(entry)).map((entry) => entry.name);
  await endRun(file, record);
  return alive;
}
