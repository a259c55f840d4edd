import { testsThatNeed } from '@platform/testing';
import { processorsBusy, processorTime, sumByRole } from './processor-time.ts';

const { it: itWithProc } = testsThatNeed(
  'processor time of running processes',
  processorTime() === null ? 'this system has no /proc' : null,
);

describe('processor time', () => {
  it('is summed by role over the descendants of the root and their ended children only', () => {
    const made = (pid: number, parent: number, name: string, endedChildrenCpuSeconds = 0) => ({
      pid,
      parent,
      name,
      cpuSeconds: 1,
      endedChildrenCpuSeconds,
    });
    const processes = [
      made(10, 1, 'node', 100),
      made(11, 10, 'node'),
      made(12, 10, 'postgres', 5),
      made(13, 12, 'postgres'),
      made(14, 11, 'beam.smp'),
      made(99, 1, 'postgres'),
    ];
    expect(sumByRole(processes, 10)).toEqual({ program: 1, postgresql: 7, rabbitmq: 1, load: 1 });
  });

  it('is converted to busy processors, never negative if a process has ended', () => {
    const before = { program: 5, postgresql: 1, rabbitmq: 0, load: 1 };
    const after = { program: 3, postgresql: 2, rabbitmq: 0, load: 5 };
    expect(processorsBusy(before, after, 4)).toEqual({ program: 0, postgresql: 0.25, rabbitmq: 0, load: 1 });
  });

  itWithProc('grows while this process works', () => {
    const before = processorTime()!;
    const endsAtMs = performance.now() + 60;
    while (performance.now() < endsAtMs);
    expect(processorTime()!.load).toBeGreaterThan(before.load);
  });
});
