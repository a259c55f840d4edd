import { execFileSync } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { isErrorCode } from './errors.ts';
import { findStat, readProc } from './proc.ts';

/** A process, identified so that a later process with the same pid is never mistaken for it. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time of the process, in a form that depends on the system; only for comparison. */
  readonly start: string;
}

/**
 * Returns the start time of process `pid`, or null if there is no such process. A zombie counts as ended: it
 * holds no resources.
 */
export function findProcessStart(pid: number): string | null {
  return process.platform === 'linux' ? findStartInProc(pid) : findStartFromPs(pid);
}

/** Whether exactly this process, not a later one with its pid, is running. */
export function isRunning(identity: ProcessIdentity): boolean {
  return findProcessStart(identity.pid) === identity.start;
}

function findStartInProc(pid: number): string | null {
  const stat = findStat(pid);
  if (stat === null || stat.state === 'Z' || stat.state === 'X') return null;
  // Ticks count from boot; the boot id distinguishes equal counts of different boots.
  return `${readProc('sys/kernel/random/boot_id')?.trim() ?? ''}:${stat.startTicks}`;
}

function findStartFromPs(pid: number): string | null {
  try {
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    return line === '' || line.startsWith('Z') ? null : line.slice(line.indexOf(' ')).trim();
  } catch (error) {
    // ps exits with 1 if there is no such process.
    if (typeof error === 'object' && error !== null && 'status' in error && error.status === 1) return null;
    throw error;
  }
}

/**
 * Sends a signal; returns false if the process has already ended.
 * @param pid negative for a whole process group
 */
export function trySignal(pid: number, signal: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (isErrorCode(error, 'ESRCH')) return false;
    throw error;
  }
}

export function findOnPath(program: string): string | null {
  const candidates = (process.env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, program));
  return candidates.find(isExecutable) ?? null;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch (error) {
    if (isErrorCode(error, 'ENOENT', 'EACCES', 'ENOTDIR')) return false;
    throw error;
  }
}
