import { findStat, listPids, type ProcessStat } from '#platform/proc.ts';

/** Seconds of processor time, or processors kept busy: who spent them. */
export interface ProcessorTime {
  /** The program under measurement: ours or the peer. */
  readonly program: number;
  readonly postgresql: number;
  readonly rabbitmq: number;
  /** The bench itself: its load generator. */
  readonly load: number;
}

type ProcessTime = Pick<ProcessStat, 'pid' | 'parent' | 'name' | 'cpuSeconds' | 'endedChildrenCpuSeconds'>;

const NOTHING: ProcessorTime = { program: 0, postgresql: 0, rabbitmq: 0, load: 0 };

/**
 * What this process and all below it have used so far. Null where the system does not tell (it is read from
 * /proc).
 */
export function processorTime(): ProcessorTime | null {
  if (process.platform !== 'linux') return null;
  const processes = listPids()
    .map(findStat)
    .filter((stat) => stat !== null);
  return sumByRole(processes, process.pid);
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

/**
 * Adds up the root and its descendants, and what ended below the latter; programs that the root itself has
 * ended are over.
 */
export function sumByRole(processes: readonly ProcessTime[], root: number): ProcessorTime {
  const total = { ...NOTHING };
  const add = (of: ProcessTime): void => {
    total[roleOf(of, root)] += of.cpuSeconds + (of.pid === root ? 0 : of.endedChildrenCpuSeconds);
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
