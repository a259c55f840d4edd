import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const WORKSPACE = join(__dirname, '../../..');
const MODULE = join(__dirname, 'tests-that-need');

interface Report {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
}

describe('tests with optional requirements', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tests-that-need-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));

  /** Runs a test file with one such test. Returns the numbers of passed, failed and skipped tests. */
  function run(missing: string | null, environment: Readonly<Record<string, string>>): number[] {
    const file = join(folder, 'planted.spec.ts');
    const [config, output] = [join(folder, 'jest.config.cjs'), join(folder, 'report.json')];
    writeFileSync(
      file,
      `import { testsThatNeed } from ${JSON.stringify(MODULE)};
       const { describe: describeHere } = testsThatNeed('a program', ${JSON.stringify(missing)});
       describeHere('a program', () => { it('works', () => undefined); });`,
    );
    writeFileSync(
      config,
      `module.exports = { ...require(${JSON.stringify(join(WORKSPACE, 'jest.unit.cjs'))}), roots: [__dirname] };`,
    );
    const { CI: _ci, TEST_FULL_SIZE: _full, ...others } = process.env;
    const jest = join(WORKSPACE, 'node_modules/jest/bin/jest.js');
    const flags = ['--config', config, '--json', '--outputFile', output];
    const { stderr } = spawnSync(process.execPath, [jest, ...flags], {
      cwd: folder,
      env: { ...others, ...environment },
      encoding: 'utf8',
    });
    if (missing !== null) expect(stderr).toContain(`SKIPPED: a program: ${missing}`);
    const report = JSON.parse(readFileSync(output, 'utf8')) as Report;
    return [report.numPassedTests, report.numFailedTests, report.numPendingTests];
  }

  it.each([
    ['run where the requirement is met', null, { CI: 'true' }, [1, 0, 0]],
    ['are skipped on a developer’s machine', 'not installed', {}, [0, 0, 1]],
    ['fail on a build server', 'not installed', { CI: 'true' }, [0, 1, 1]],
    ['fail in a full run', 'not installed', { TEST_FULL_SIZE: 'true' }, [0, 1, 1]],
  ])('%s', (_, missing, environment, counts) => {
    expect(run(missing, environment)).toEqual(counts);
  });
});
