import { chooseSteps, STEPS } from './steps.ts';

describe('chooseSteps', () => {
  it('runs everything when nothing is said', () => {
    expect(chooseSteps([])).toBe(STEPS);
  });

  it('keeps the usual order, whatever order the names come in', () => {
    expect(chooseSteps(['--only', 'unit,format']).map(({ name }) => name)).toEqual(['format', 'unit']);
  });

  it.each([[['--only']], [['--only', 'units']], [['--quick']], [['--only', 'unit', 'lint']]])(
    'refuses %j with the names of the steps',
    (args) => {
      expect(() => chooseSteps(args)).toThrow(/Usage: .*format, lint, types/);
    },
  );

  it('has no static check that waits for servers', () => {
    expect(STEPS.filter(({ isStatic, needsServers }) => isStatic && needsServers)).toEqual([]);
  });
});
