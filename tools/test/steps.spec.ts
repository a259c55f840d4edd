import { chooseSteps, STEPS } from './steps.ts';

describe('chooseSteps', () => {
  it('leaves out the long steps, unless they are asked for', () => {
    const names = STEPS.map(({ name }) => name);
    expect(chooseSteps([]).map(({ name }) => name)).toEqual(names.slice(0, names.indexOf('mutants')));
    expect(chooseSteps(['--all']).map(({ name }) => name)).toEqual(
      names.filter((name) => name !== 'mutants'),
    );
    expect(chooseSteps(['--only', 'mutants']).map(({ name }) => name)).toEqual(['mutants']);
    expect(chooseSteps(['--only', 'drill']).map(({ name }) => name)).toEqual(['drill']);
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
