import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { MUTANTS } from './catalogue.ts';

const DOCUMENT = readFileSync(join(__dirname, '../../docs/reliability.md'), 'utf8');
/** The first column of the table of promises. */
const PROMISES = (/\| promise +\| check[^]*?\n\n/.exec(DOCUMENT)?.[0] ?? '')
  .split('\n')
  .slice(2)
  .flatMap((line) => line.split('|')[1]?.trim() ?? []);

describe('the catalogue of mutants', () => {
  it('has a unique name for each', () => {
    const names = MUTANTS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it('covers every documented promise, and no other', () => {
    const broken = new Set<string>(MUTANTS.map(({ promise }) => promise));
    expect([...broken].toSorted()).toEqual(PROMISES.toSorted());
  });
});
