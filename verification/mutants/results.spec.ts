import { mutantTable, withResults, withTable } from './results.ts';
import { CALM, calm } from './rounds.ts';

const MUTANTS = [
  { name: 'a', description: 'it is lost', promise: 'settings', rounds: CALM },
  { name: 'b', description: 'it is late', promise: 'fires', rounds: calm(7) },
  { name: 'c', description: 'it is wrong', promise: 'logs', rounds: CALM },
] as const;
const RESULTS = [
  { name: 'a', finding: '✘ settings: history: lost: x', seconds: 31, others: 0 },
  { name: 'b', finding: null, seconds: 90, others: 0 },
];

describe('the table of mutants', () => {
  it('names the check that noticed each mutant, and those that were not noticed', () => {
    expect(mutantTable(MUTANTS, RESULTS).slice(2)).toEqual([
      '| settings | it is lost | `calm` | settings | 31 |',
      '| fires | it is late | 7 × `calm` | **not noticed** | 90 |',
      '| logs | it is wrong | `calm` | not run |  |',
    ]);
  });

  it('shows the number of other mutants in the copy', () => {
    const beside = [{ name: 'a', finding: '✘ settings: history: lost: x', seconds: 31, others: 4 }];
    expect(mutantTable(MUTANTS.slice(0, 1), beside).slice(2)).toEqual([
      '| settings | it is lost | `calm` | settings | beside 4 |',
    ]);
  });

  it('replaces the previous table', () => {
    const document = [
      'Before.',
      '<!-- mutants: written by npm run verify:mutants -- --write -->',
      'old',
      '<!-- /mutants -->',
      'After.',
    ].join('\n');
    const written = withTable(document, ['new']);
    expect(written).not.toContain('old');
    expect(written.split('\n').filter((line) => line !== '')).toEqual([
      'Before.',
      expect.stringContaining('<!-- mutants'),
      'new',
      '<!-- /mutants -->',
      'After.',
    ]);
    expect(() => withTable('no place', ['new'])).toThrow('no place');
  });
});

describe('withResults', () => {
  const alone = { name: 'a', finding: 'x', seconds: 1, others: 0 };
  const beside = { ...alone, others: 3 };

  it('keeps a result of a mutant planted alone, until it is planted alone again or not noticed', () => {
    expect(withResults([alone], [beside])).toEqual([alone]);
    expect(withResults([beside], [alone])).toEqual([alone]);
    const missed = { ...beside, finding: null };
    expect(withResults([alone], [missed])).toEqual([missed]);
    expect(withResults([missed], [beside])).toEqual([beside]);
  });
});
