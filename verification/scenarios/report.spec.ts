import type { Check } from '#verification/audit/check.ts';
import { isClean, renderReport } from './report.ts';

const check = (findings: string[]): Check => ({
  name: 'settings',
  acknowledged: 2,
  audited: 2,
  lost: findings.length,
  duplicated: 0,
  findings,
});
const render = (findings: string[]): string =>
  renderReport({
    blocks: [['a table'], ['a remark']],
    checks: [check(findings)],
    success: 'nothing lost, nothing twice',
    command: 'npm run chaos -- --seed 7',
  });

describe('renderReport', () => {
  it('shows the blocks of the scenario, and each check', () => {
    expect(render([])).toContain('a table\n\na remark\n');
    expect(render(['lost: a'])).toMatch(/^settings +2 +2 +1 +0 +0$/m);
  });

  it('shows the success line if there are no findings', () => {
    expect(isClean([check([])])).toBe(true);
    expect(render([])).toContain('✔ nothing lost, nothing twice');
  });

  it('lists the findings and the command that repeats the run', () => {
    expect(isClean([check(['lost: a'])])).toBe(false);
    expect(render(['lost: a'])).toContain('✘ settings: lost: a');
    expect(render(['lost: a'])).toContain('Again with: npm run chaos -- --seed 7');
  });
});
