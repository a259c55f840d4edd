import { ArgumentsError } from '#platform/command-line.ts';
import { chooseMutants, groupMutants, nameFindings, PARTS, partOf, scenarioOf } from './groups.ts';
import { calm, CALM, one } from './scenario.ts';

const MUTANTS = ['a', 'b', 'c', 'd'].map((name) => ({ name }));

describe('chooseMutants', () => {
  it('takes all, or those that are named', () => {
    expect(chooseMutants(MUTANTS, [])).toEqual(MUTANTS);
    expect(chooseMutants(MUTANTS, ['d', 'b'])).toEqual([{ name: 'b' }, { name: 'd' }]);
  });

  it('refuses a name that there is not', () => {
    expect(() => chooseMutants(MUTANTS, ['b', 'x'])).toThrow(ArgumentsError);
  });
});

describe('groupMutants', () => {
  type Entry = Parameters<typeof groupMutants>[0][number] & { readonly name: string };
  const mutant = (name: string, more: Partial<Entry> = {}): Entry => ({
    name,
    claim: 'fires',
    bundle: 'main.js',
    original: `called with ${name}`,
    scenario: CALM,
    ...more,
  });
  const groupNames = (...mutants: readonly Entry[]): string[] =>
    groupMutants(mutants).map((group) => group.map(({ name }) => name).join(''));

  it('puts mistakes together that break other promises', () => {
    expect(groupNames(mutant('a'), mutant('b'), mutant('c', { claim: 'logs' }))).toEqual(['ac', 'b']);
  });

  it('puts mistakes together that break other aspects of a promise', () => {
    const groups = groupNames(
      mutant('a', { aspect: 'days' }),
      mutant('b', { aspect: 'minutes' }),
      mutant('c', { aspect: 'days' }),
      mutant('d'),
    );
    expect(groups).toEqual(['ab', 'c', 'd']);
  });

  it('lets a mistake join those whose run has its rounds already', () => {
    const scenario = one('database-kill');
    const groups = groupNames(
      mutant('a'),
      mutant('b', { scenario }),
      mutant('c', { claim: 'logs', scenario }),
    );
    expect(groups).toEqual(['a', 'bc']);
  });

  it.each([
    ['changes the same code', { original: 'when\n  called with a\n' }],
    ['masks others', { masks: 'nothing fires' }],
  ])('leaves one alone that %s', (_what, more) => {
    expect(groupNames(mutant('a'), mutant('b', { claim: 'logs', ...more }))).toEqual(['a', 'b']);
  });

  it('has no run of many rounds', () => {
    const [long, other] = [calm(8), one('database-kill')];
    const groups = groupNames(
      mutant('a', { scenario: long }),
      mutant('b', { claim: 'logs', scenario: other }),
    );
    expect(groups).toEqual(['a', 'b']);
  });

  it('has the rounds of all in one run', () => {
    const group = [mutant('a', { scenario: calm(2) }), mutant('b', { scenario: one('database-kill') })];
    expect(scenarioOf([...group, mutant('c')])).toEqual([...calm(2), ...one('database-kill')]);
  });
});

describe('partOf', () => {
  it('takes each once in as many days as there are parts, whatever the day', () => {
    const days = Array.from({ length: PARTS }, (_, index) => 20_000 + index);
    const taken = days.flatMap((day) => partOf(['a', 'b', 'c', 'd'], day));
    expect(taken.toSorted()).toEqual(['a', 'b', 'c', 'd']);
  });
});

describe('nameFindings', () => {
  const [late, lost] = [{ caughtBy: /late/ }, { caughtBy: /lost/ }];

  it('gives the finding of each', () => {
    expect(nameFindings([late, lost], ['x is lost', 'y is late'])).toEqual(['y is late', 'x is lost']);
    expect(nameFindings([late, lost], ['x is lost'])).toEqual([null, 'x is lost']);
  });

  it('takes no finding for one that another may have caused', () => {
    expect(nameFindings([late, lost], ['x is late and lost'])).toEqual([null, null]);
  });
});
