import { excessiveOnWire, wireTable } from './wire.ts';

const cost = (name: string, perByte: number) => ({ name, bytes: 1_000, cpuMs: perByte, perByte });

describe('bytes on the wire', () => {
  it('are excessive when they cost more than twice what a short request does', () => {
    const costs = [cost('a short request', 1), cost('chunks', 1.9), cost('dear', 2.1)];
    expect(excessiveOnWire(costs).map(({ name }) => name)).toEqual(['dear']);
    expect(wireTable('task-service', costs)).toMatch(
      /^processor time of task-service [^]*dear\n.*chunks\n.*a short/,
    );
  });
});
