import type { Check } from './audit/check.ts';
import { planFaults } from './plan.ts';
import { isClean, renderReport } from './report.ts';

const check = (findings: string[]): Check => ({
  name: 'settings',
  acknowledged: 2,
  audited: 2,
  lost: findings.length,
  duplicated: 0,
  findings,
});
const result = (findings: string[]) => ({
  seed: 7,
  flags: '--rounds 2',
  rounds: planFaults(7, 2, ['kill-replica']).map((fault, index) => ({
    fault,
    proof: index === 0 ? 'seen' : null,
    recoveredAfterMs: 1_000 * (index + 1),
    acknowledged: 5,
    pausesMs: { settings: 500 * (index + 1) },
  })),
  checks: [check(findings)],
  outcomes: {},
  longestMs: {},
  attempts: 3,
  lostResponses: 0,
  repeatedMessages: 0,
  slowestRevocationMs: 0,
  drainedAfterMs: 0,
});

describe('renderReport', () => {
  it('counts only faults that were seen to take place', () => {
    expect(renderReport(result([]))).toMatch(/^kill-replica +1 +2\.0 s \/ 2\.0 s$/m);
  });

  it('has the median and the longest pause of each kind of request', () => {
    expect(renderReport(result([]))).toMatch(/^kill-replica +1\.0 s \/ 1\.0 s$/m);
  });

  it('says so when nothing is wrong', () => {
    expect(isClean(result([]))).toBe(true);
    expect(renderReport(result([]))).toContain('✔ seed 7: nothing lost, nothing twice');
  });

  it('lists what is wrong and how to repeat it', () => {
    const text = renderReport(result(['lost: a']));
    expect(isClean(result(['lost: a']))).toBe(false);
    expect(text).toContain('✘ settings: lost: a');
    expect(text).toContain('--seed 7 --rounds 2');
  });
});
