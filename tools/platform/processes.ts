import { execFileSync } from 'node:child_process';
import { accessSync, constants, readFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { isErrorCode } from './errors.ts';

/** A process named so that a later process that happens to get the same number is never taken for it. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When the process began, in whatever form the system tells it; only good for comparing. */
  readonly start: string;
}

/** When process `pid` began, or null when there is no such process (a zombie counts as gone: it holds nothing). */
export function findProcessStart(pid: number): string | null {
  return process.platform === 'linux' ? findStartInProc(pid) : findStartFromPs(pid);
}

/** True while exactly this process, not a later one with its number, is running. */
export function isRunning(identity: ProcessIdentity): boolean {
  return findProcessStart(identity.pid) === identity.start;
}

/**
 * Reads the start time out of the text of `/proc/<pid>/stat`, in clock ticks since boot; null for a zombie.
 * The command name in parentheses may itself hold spaces and parentheses, so fields count from the last one.
 */
export function parseProcStat(stat: string): string | null {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [state, startTicks] = [fields[0], fields[19]];
  return state === 'Z' || state === 'X' || startTicks === undefined ? null : startTicks;
}

/** True once `pid` has obeyed SIGSTOP. Linux only. */
export function isStopped(pid: number): boolean {
  const stat = readIfPresent(`/proc/${pid}/stat`) ?? '';
  return stat.slice(stat.lastIndexOf(')')).startsWith(') T');
}

/** The processes that `pid` has begun and not outlived; all of them while it is stopped. Linux only. */
export function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return (children.match(/\d+/g) ?? []).map(Number);
}

function findStartInProc(pid: number): string | null {
  const stat = readIfPresent(`/proc/${pid}/stat`);
  const ticks = stat === null ? null : parseProcStat(stat);
  // Ticks count from boot, so the same number may come again after a reboot.
  return ticks === null ? null : `${readIfPresent('/proc/sys/kernel/random/boot_id')?.trim() ?? ''}:${ticks}`;
}

function readIfPresent(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    // ESRCH: the process ended between opening and reading.
    if (isErrorCode(error, 'ENOENT', 'ESRCH', 'EACCES')) return null;
    throw error;
  }
}

function findStartFromPs(pid: number): string | null {
  try {
    const line = execFileSync('ps', ['-o', 'stat=,lstart=', '-p', String(pid)], { encoding: 'utf8' }).trim();
    return line === '' || line.startsWith('Z') ? null : line.slice(line.indexOf(' ')).trim();
  } catch (error) {
    // ps exits 1 when there is no such process.
    if (typeof error === 'object' && error !== null && 'status' in error && error.status === 1) return null;
    throw error;
  }
}

/** Sends a signal; false when the process has ended in the meantime. @param pid negative: to its whole process group */
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
