import { findStat, listPids, type ProcessStat } from '#platform/proc.ts';

/** Seconds of processor time, or numbers of busy processors, by role. */
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

/** Reads the processor time of this process and its descendants from /proc. Null on systems without /proc. */
export function processorTime(): ProcessorTime | null {
  if (process.platform !== 'linux') return null;
  const processes = listPids()
    .map(findStat)
    .filter((stat) => stat !== null);
  return sumByRole(processes, process.pid);
}

/** Number of busy processors between two readings. */
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
 * Sums the root, its descendants, and the ended children of the descendants. Ended children of the root do
 * not count.
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
  // The programs of a privately unpacked RabbitMQ are started by their own loader.
  return name === 'beam.smp' || name.startsWith('ld-linux-') ? 'rabbitmq' : 'program';
}
