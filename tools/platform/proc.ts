import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { isErrorCode } from './errors.ts';

/** A process as /proc/<pid>/stat describes it, see proc(5). */
export interface ProcessStat {
  readonly pid: number;
  readonly parent: number;
  readonly name: string;
  /** One letter: T is stopped, Z is a zombie. */
  readonly state: string;
  /** Start time, in clock ticks since boot. */
  readonly startTicks: string;
  readonly cpuSeconds: number;
  /** Processor time of children that have ended, e.g. of a server's closed sessions. */
  readonly endedChildrenCpuSeconds: number;
}

/** Unit of the times in /proc/<pid>/stat: Linux uses 10 ms, whatever the kernel's own tick is. */
const TICKS_PER_SECOND = 100;

/** Returns the pids of all running processes. */
export function listPids(): number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number);
}

/** Returns the text of `/proc/<file>`; null if there is no such file, e.g. because the process has ended. */
export function readProc(file: string): string | null {
  return nullIfAbsent(() => readFileSync(`/proc/${file}`, 'utf8'));
}

/** Returns the state of a process; null if it does not exist. A zombie still has a state (`Z`). */
export function findStat(pid: number): ProcessStat | null {
  const text = readProc(`${pid}/stat`);
  return text === null ? null : parseStat(text);
}

/**
 * Parses a line of `stat`. The name is in parentheses and may contain any character, so fields count from the
 * last parenthesis.
 */
export function parseStat(text: string): ProcessStat {
  const nameEnds = text.lastIndexOf(')');
  const fields = text.slice(nameEnds + 2).split(' ');
  const seconds = (user: number, system: number): number =>
    (Number(fields[user]) + Number(fields[system])) / TICKS_PER_SECOND;
  return {
    pid: Number.parseInt(text, 10),
    parent: Number(fields[1]),
    name: text.slice(text.indexOf('(') + 1, nameEnds),
    state: fields[0] ?? '',
    startTicks: fields[19] ?? '',
    cpuSeconds: seconds(11, 12),
    endedChildrenCpuSeconds: seconds(13, 14),
  };
}

/** Returns the resident memory of the process; null once it has ended. */
export function residentBytes(pid: number): number | null {
  const kibibytes = /^VmRSS:\s+(\d+) kB/m.exec(readProc(`${pid}/status`) ?? '')?.[1];
  return kibibytes === undefined ? null : Number(kibibytes) * 1_024;
}

/**
 * Returns the processor time of the process's threads in ms, exactly: `cpuSeconds` has a resolution of 10 ms.
 */
export function cpuMsOf(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const nanoseconds = threads.map(
    (thread) => readProc(`${pid}/task/${thread}/schedstat`)?.split(' ')[0] ?? 0,
  );
  return nanoseconds.reduce((sum: number, one) => sum + Number(one), 0) / 1e6;
}

export function countOpenFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/**
 * Returns the children of `pid` that it has not reaped yet. None of them disappears while `pid` is stopped.
 */
export function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return (children.match(/\d+/g) ?? []).map(Number);
}

/** Whether `pid` has stopped after SIGSTOP. */
export function isStopped(pid: number): boolean {
  return findStat(pid)?.state === 'T';
}

/** Returns the network namespace of the process, e.g. `net:[4026531840]`; null once it has ended. */
export function networkOf(pid: number): string | null {
  return nullIfAbsent(() => readlinkSync(`/proc/${pid}/ns/net`));
}

function nullIfAbsent(read: () => string): string | null {
  try {
    return read();
  } catch (error) {
    // ESRCH: the process ended between opening and reading.
    if (isErrorCode(error, 'ENOENT', 'ESRCH', 'EACCES')) return null;
    throw error;
  }
}
