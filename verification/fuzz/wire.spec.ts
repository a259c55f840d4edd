import { excessiveOnWire, wireTable } from './wire.ts';

const cost = (name: string, perByte: number) => ({ name, bytes: 1_000, cpuMs: perByte, perByte });

describe('bytes on the wire', () => {
  it('are excessive if they cost more than twice as much as those of a short request', () => {
    const costs = [cost('a short request', 1), cost('chunks', 1.9), cost('expensive', 2.1)];
    expect(excessiveOnWire(costs).map(({ name }) => name)).toEqual(['expensive']);
    expect(wireTable('task-service', costs)).toMatch(
      /^processor time of task-service [^]*expensive\n.*chunks\n.*a short/,
    );
  });
});
