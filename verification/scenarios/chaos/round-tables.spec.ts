import { planFaults } from './plan.ts';
import { roundTables } from './round-tables.ts';

const ROUNDS = planFaults(7, 2, ['kill-replica']).map((fault, index) => ({
  fault,
  proof: index === 0 ? 'seen' : null,
  recoveredAfterMs: 1_000 * (index + 1),
  acknowledged: 5,
  pausesMs: { settings: 500 * (index + 1) },
}));

describe('roundTables', () => {
  const text = roundTables(ROUNDS).flat().join('\n');

  it('counts only faults that were observed', () => {
    expect(text).toMatch(/^kill-replica +1 +2\.0 s \/ 2\.0 s$/m);
  });

  it('shows the median and the longest pause of each kind of request', () => {
    expect(text).toMatch(/^kill-replica +1\.0 s \/ 1\.0 s$/m);
  });
});
