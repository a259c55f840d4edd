import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

interface FixtureResult {
  fixture: string;
  expectedRule: string;
  says: string;
  reported: string[];
}

const WORKSPACE = join(__dirname, '../..');

function lintFixtures(): FixtureResult[] {
  const output = execFileSync(process.execPath, [join(__dirname, 'lint-fixtures.ts')], {
    cwd: WORKSPACE,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return JSON.parse(output) as FixtureResult[];
}

describe('boundaries and rules of the house', () => {
  const results = lintFixtures();
  const violations = results.filter((result) => result.expectedRule !== 'none');

  it.each(violations.map((result) => [result.fixture, result] as const))(
    '%s is refused by its rule',
    (_, result) => {
      const reported = result.reported.filter((line) => line.startsWith(`${result.expectedRule}: `));
      expect(reported).toContainEqual(expect.stringContaining(result.says));
    },
  );

  it.each(
    results
      .filter((result) => result.expectedRule === 'none')
      .map((result) => [result.fixture, result] as const),
  )('%s is accepted', (_, result) => {
    expect(result.reported).toEqual([]);
  });

  it('has a fixture for every rule of the house', () => {
    const proven = new Set(violations.map((result) => result.expectedRule));
    for (const rule of [
      'module-boundaries',
      'plain-file-is-pure',
      'telling-names',
      'todo-has-reason',
      'no-wall-clock',
      'no-import-cycle',
    ]) {
      expect(proven).toContain(`house/${rule}`);
    }
  });
});
