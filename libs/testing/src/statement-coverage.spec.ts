import { statementsInText, statementsNotRun } from './statement-coverage';

const PROGRAM = `
const FIND = \`
  SELECT name, value
  FROM demo.setting WHERE name = $1 AND kind = 'plain' AND live = true LIMIT 10\`;
const purge = (table: string) => \`DELETE FROM demo.\${table} WHERE expires_at < now() - interval '1 day'\`;
const sentence = 'Select a name';
`;
const statements = statementsInText('demo.ts', PROGRAM);
const places = (queries: string[]): string[] =>
  statementsNotRun(statements, queries).map(({ place }) => place);

/** Queries as in pg_stat_statements, with constants replaced by parameters. */
const FOUND = 'SELECT name, value\n  FROM demo.setting WHERE name = $1 AND kind = $2 AND live = $3 LIMIT $4';
const PURGED = 'DELETE FROM demo.code WHERE expires_at < now() - interval $1';

describe('statement coverage', () => {
  it('finds statements and ignores sentences', () => {
    expect(statements.map(({ place }) => place)).toEqual(['demo.ts:2', 'demo.ts:5']);
  });

  it('lists statements that did not run', () => {
    expect(places([])).toEqual(['demo.ts:2', 'demo.ts:5']);
    expect(places([FOUND])).toEqual(['demo.ts:5']);
    expect(places([PURGED])).toEqual(['demo.ts:2']);
    expect(places([FOUND, PURGED])).toEqual([]);
  });

  it('recognises interpolated constants, and the field of extract()', () => {
    const program =
      "const A = `SELECT extract(epoch FROM now() - interval '${limit}')::int FROM demo.a WHERE b = 'c'`;";
    const run = 'SELECT extract($1 FROM now() - interval $2)::int FROM demo.a WHERE b = $3';
    expect(statementsNotRun(statementsInText('demo.ts', program), [run])).toEqual([]);
    expect(
      statementsNotRun(statementsInText('demo.ts', program), [`${run.slice(0, -6)}c = $3`]),
    ).toHaveLength(1);
  });

  it('distinguishes named parameters from type casts', () => {
    const program = "const A = 'SELECT a FROM demo.a WHERE b = :after::uuid LIMIT :limit';";
    const run = 'SELECT a FROM demo.a WHERE b = $1::uuid LIMIT $2';
    expect(statementsNotRun(statementsInText('demo.ts', program), [run])).toEqual([]);
    const other = run.replace('uuid', 'text');
    expect(statementsNotRun(statementsInText('demo.ts', program), [other])).toHaveLength(1);
  });

  it('does not accept a different statement', () => {
    expect(places([FOUND.replace('value', 'other'), PURGED.replace('<', '>')])).toEqual([
      'demo.ts:2',
      'demo.ts:5',
    ]);
  });
});
