import { readFileSync, readdirSync } from 'node:fs';

/** Seconds of processor time, or processors kept busy: who spent them. */
export interface ProcessorTime {
  /** The program under measurement: ours or the peer. */
  readonly program: number;
  readonly postgresql: number;
  readonly rabbitmq: number;
  /** The bench itself: its load generator. */
  readonly load: number;
}

interface ProcessTime {
  readonly pid: number;
  readonly parent: number;
  readonly name: string;
  readonly seconds: number;
  /** Of children that have ended: a server's sessions come and go. */
  readonly endedChildren: number;
}

/** Linux counts in hundredths of a second whatever the kernel's own tick is. */
const TICKS_PER_SECOND = 100;
const NOTHING: ProcessorTime = { program: 0, postgresql: 0, rabbitmq: 0, load: 0 };

/** What this process and all below it have used so far. Null where the system does not tell (it is read from /proc). */
export function processorTime(): ProcessorTime | null {
  const processes = runningProcesses();
  return processes === null ? null : sumByRole(processes, process.pid);
}

/** Processors kept busy between two readings. */
export function processorsBusy(before: ProcessorTime, after: ProcessorTime, seconds: number): ProcessorTime {
  const busy = (role: keyof ProcessorTime): number => Math.max(0, after[role] - before[role]) / seconds;
  return {
    program: busy('program'),
    postgresql: busy('postgresql'),
    rabbitmq: busy('rabbitmq'),
    load: busy('load'),
  };
}

/** Adds up the root and its descendants, and what ended below the latter; programs that the root itself has ended are over. */
export function sumByRole(processes: readonly ProcessTime[], root: number): ProcessorTime {
  const total = { ...NOTHING };
  const add = (of: ProcessTime): void => {
    total[roleOf(of, root)] += of.pid === root ? of.seconds : of.seconds + of.endedChildren;
    processes.filter(({ parent }) => parent === of.pid).forEach(add);
  };
  processes.filter(({ pid }) => pid === root).forEach(add);
  return total;
}

function roleOf({ pid, name }: ProcessTime, root: number): keyof ProcessorTime {
  if (pid === root) return 'load';
  if (name === 'postgres') return 'postgresql';
  // Unpacked in private, its programs are started by their own loader.
  return name === 'beam.smp' || name.startsWith('ld-linux-') ? 'rabbitmq' : 'program';
}

function runningProcesses(): ProcessTime[] | null {
  if (process.platform !== 'linux') return null;
  return readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry))
    .map((entry) => readStat(`/proc/${entry}/stat`))
    .filter((stat) => stat !== null)
    .map(parseStat);
}

/** Null: it has ended since it was listed. */
function readStat(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return null;
    throw error;
  }
}

/** A line of `/proc/<pid>/stat`, see proc(5). The name is in brackets and may contain any character. */
export function parseStat(line: string): ProcessTime {
  const nameEnds = line.lastIndexOf(')');
  const fields = line.slice(nameEnds + 2).split(' ');
  const seconds = (first: number): number =>
    (Number(fields[first]) + Number(fields[first + 1])) / TICKS_PER_SECOND;
  return {
    pid: Number.parseInt(line, 10),
    parent: Number(fields[1]),
    name: line.slice(line.indexOf('(') + 1, nameEnds),
    seconds: seconds(11),
    endedChildren: seconds(13),
  };
}
