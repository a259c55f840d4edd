import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { isErrorCode } from './errors.ts';

/** A process as /proc/<pid>/stat describes it, see proc(5). */
export interface ProcessStat {
  readonly pid: number;
  readonly parent: number;
  readonly name: string;
  /** One letter: T is stopped, Z is a zombie. */
  readonly state: string;
  /** When it began, in clock ticks since boot. */
  readonly startTicks: string;
  readonly cpuSeconds: number;
  /** Of children that have ended: a server's sessions come and go. */
  readonly endedChildrenCpuSeconds: number;
}

/** Linux counts in hundredths of a second whatever the kernel's own tick is. */
const TICKS_PER_SECOND = 100;

/** The numbers of all processes that run right now. */
export function listPids(): number[] {
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map(Number);
}

/** The text of `/proc/<file>`; null where there is none, as of a process that has ended. */
export function readProc(file: string): string | null {
  return nullIfAbsent(() => readFileSync(`/proc/${file}`, 'utf8'));
}

/** Null once the process has ended. */
export function findStat(pid: number): ProcessStat | null {
  const text = readProc(`${pid}/stat`);
  return text === null ? null : parseStat(text);
}

/**
 * The name stands in parentheses and may contain any character, so fields count from the last parenthesis.
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

/** Memory that the process holds now; null once it has ended. */
export function residentBytes(pid: number): number | null {
  const kibibytes = /^VmRSS:\s+(\d+) kB/m.exec(readProc(`${pid}/status`) ?? '')?.[1];
  return kibibytes === undefined ? null : Number(kibibytes) * 1_024;
}

/**
 * Milliseconds that the process's threads were on a processor, exactly: `cpuSeconds` counts in ticks of 10
 * ms.
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

/** The children of `pid` that it has not waited for yet. None can go while `pid` is stopped. */
export function childrenOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return (children.match(/\d+/g) ?? []).map(Number);
}

/** True once `pid` has obeyed SIGSTOP. */
export function isStopped(pid: number): boolean {
  return findStat(pid)?.state === 'T';
}

/** The network that the process is in, e.g. `net:[4026531840]`; null once it has ended. */
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
