import { ArgumentsError } from '#platform/command-line.ts';
import { chooseMutants, groupMutants, nameFindings, PARTS, partOf, roundsOf } from './groups.ts';
import { calm, CALM, one } from './rounds.ts';

const MUTANTS = ['a', 'b', 'c', 'd'].map((name) => ({ name }));

describe('chooseMutants', () => {
  it('returns all, or the named ones', () => {
    expect(chooseMutants(MUTANTS, [])).toEqual(MUTANTS);
    expect(chooseMutants(MUTANTS, ['d', 'b'])).toEqual([{ name: 'b' }, { name: 'd' }]);
  });

  it('refuses an unknown name', () => {
    expect(() => chooseMutants(MUTANTS, ['b', 'x'])).toThrow(ArgumentsError);
  });
});

describe('groupMutants', () => {
  type Entry = Parameters<typeof groupMutants>[0][number] & { readonly name: string };
  const mutant = (name: string, more: Partial<Entry> = {}): Entry => ({
    name,
    promise: 'fires',
    bundle: 'main.js',
    original: `called with ${name}`,
    rounds: CALM,
    ...more,
  });
  const groupNames = (...mutants: readonly Entry[]): string[] =>
    groupMutants(mutants).map((group) => group.map(({ name }) => name).join(''));

  it('groups mutants that break different promises', () => {
    expect(groupNames(mutant('a'), mutant('b'), mutant('c', { promise: 'logs' }))).toEqual(['ac', 'b']);
  });

  it('groups mutants that break different aspects of a promise', () => {
    const groups = groupNames(
      mutant('a', { aspect: 'days' }),
      mutant('b', { aspect: 'minutes' }),
      mutant('c', { aspect: 'days' }),
      mutant('d'),
    );
    expect(groups).toEqual(['ab', 'c', 'd']);
  });

  it('adds a mutant to the group whose run already has its rounds', () => {
    const rounds = one('database-kill');
    const groups = groupNames(mutant('a'), mutant('b', { rounds }), mutant('c', { promise: 'logs', rounds }));
    expect(groups).toEqual(['a', 'bc']);
  });

  it.each([
    ['changes the same code', { original: 'when\n  called with a\n' }],
    ['masks others', { masks: 'nothing fires' }],
  ])('keeps a mutant separate that %s', (_what, more) => {
    expect(groupNames(mutant('a'), mutant('b', { promise: 'logs', ...more }))).toEqual(['a', 'b']);
  });

  it('forms no group with too many rounds', () => {
    const [long, other] = [calm(8), one('database-kill')];
    const groups = groupNames(mutant('a', { rounds: long }), mutant('b', { promise: 'logs', rounds: other }));
    expect(groups).toEqual(['a', 'b']);
  });

  it('unites the rounds of a group in one run', () => {
    const group = [mutant('a', { rounds: calm(2) }), mutant('b', { rounds: one('database-kill') })];
    expect(roundsOf([...group, mutant('c')])).toEqual([...calm(2), ...one('database-kill')]);
  });
});

describe('partOf', () => {
  it('returns each group once in any sequence of as many days as there are parts', () => {
    const days = Array.from({ length: PARTS }, (_, index) => 20_000 + index);
    const taken = days.flatMap((day) => partOf(['a', 'b', 'c', 'd'], day));
    expect(taken.toSorted()).toEqual(['a', 'b', 'c', 'd']);
  });
});

describe('nameFindings', () => {
  const [late, lost] = [{ caughtBy: /late/ }, { caughtBy: /lost/ }];

  it('returns the finding of each', () => {
    expect(nameFindings([late, lost], ['x is lost', 'y is late'])).toEqual(['y is late', 'x is lost']);
    expect(nameFindings([late, lost], ['x is lost'])).toEqual([null, 'x is lost']);
  });

  it('ignores a finding that matches two mutants', () => {
    expect(nameFindings([late, lost], ['x is late and lost'])).toEqual([null, null]);
  });
});
