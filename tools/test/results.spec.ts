import {
  countByProject,
  countReport,
  countStep,
  countTests,
  listFailures,
  summarise,
  type Failure,
  type JestReport,
} from './results.ts';

const report = (overrides: Partial<JestReport> = {}): JestReport => ({
  success: true,
  numPassedTests: 5,
  numFailedTests: 0,
  numPendingTests: 0,
  numRuntimeErrorTestSuites: 0,
  testResults: [],
  ...overrides,
});

describe('countReport', () => {
  it('counts a test file that could not be loaded as one failure', () => {
    expect(countReport(report({ success: false, numRuntimeErrorTestSuites: 1 }))).toEqual({
      passed: 5,
      failed: 1,
      skipped: 0,
    });
  });

  it('counts a failed run without a failed test as one failure', () => {
    expect(countReport(report({ success: false })).failed).toBe(1);
  });
});

describe('countTests', () => {
  it('adds the reports of all projects up', () => {
    const reports = [report(), report({ numPassedTests: 2, numPendingTests: 1 })];
    expect(countTests(true, reports)).toEqual({ passed: 7, failed: 0, skipped: 1 });
  });

  it('counts a missing report as a failure', () => {
    expect(countTests(true, [report(), null])).toEqual({ passed: 5, failed: 1, skipped: 0 });
  });

  it('counts a failed step as a failure even if every report is green', () => {
    expect(countTests(false, [report()]).failed).toBe(1);
  });
});

describe('countByProject', () => {
  it('adds the files of a project up', () => {
    const file = (name: string, ...statuses: string[]) => ({
      name: `/checkout/${name}`,
      status: 'passed',
      message: '',
      assertionResults: statuses.map((status) => ({ status, fullName: 'a test', failureMessages: [] })),
    });
    const testResults = [
      file('libs/time/src/zone.spec.ts', 'passed', 'passed'),
      file('apps/auth-service/src/keys.spec.ts', 'passed', 'pending'),
      file('libs/time/src/clock.spec.ts', 'passed', 'failed'),
    ];
    expect(countByProject(report({ testResults }), '/checkout')).toBe(
      '      1 passed in apps/auth-service\n      3 passed in libs/time',
    );
  });
});

describe('listFailures', () => {
  const file = { name: '/checkout/libs/time/src/zone.spec.ts', status: 'failed', message: '' };

  it('names each failed test with its file and its message', () => {
    const failureMessages = ['expected 1\nreceived 2'];
    const assertionResults = [
      { status: 'passed', fullName: 'a zone has a name', failureMessages: [] },
      { status: 'failed', fullName: 'a zone has an offset', failureMessages },
    ];
    expect(listFailures(report({ testResults: [{ ...file, assertionResults }] }), '/checkout')).toEqual([
      {
        file: 'libs/time/src/zone.spec.ts',
        test: 'a zone has an offset',
        message: 'expected 1\nreceived 2',
      },
    ]);
  });

  it('names a file that failed as a whole', () => {
    const testResults = [{ ...file, message: 'Cannot find module', assertionResults: [] }];
    expect(listFailures(report({ testResults }), '/checkout')).toEqual([
      { file: 'libs/time/src/zone.spec.ts', test: '', message: 'Cannot find module' },
    ]);
  });
});

describe('summarise', () => {
  const summarised = (failures: readonly Failure[]): string =>
    summarise([
      { name: 'format', count: countStep(true), failures: [], durationMs: 1_200 },
      { name: 'unit', count: countTests(true, [report(), null]), failures, durationMs: 60_000 },
    ]);

  it('ends with the total alone on its line', () => {
    const text = summarised([]);
    expect(text.split('\n').at(-1)).toBe('6 passed, 1 failed');
    expect(text).toMatch(/^✘ unit +60\.0 s +5 +1 +0$/m);
  });

  it('shows the beginning of each message without its colours', () => {
    const message = ['\u001b[31mexpected 1\u001b[39m', ...Array<string>(20).fill('at …')].join('\n');
    const text = summarised([{ file: 'a.spec.ts', test: 'adds', message }]);
    expect(text).toContain('\n✘ a.spec.ts › adds\n    expected 1\n    at …\n');
    expect(text.match(/at …/g)).toHaveLength(11);
  });

  it('names each file with failed tests once more at the end', () => {
    const failed = (file: string, test: string): Failure => ({ file, test, message: '' });
    const text = summarised([
      failed('a.spec.ts', 'adds'),
      failed('a.spec.ts', 'subtracts'),
      failed('b.spec.ts', ''),
      failed('c.spec.ts', 'x'.repeat(101)),
    ]);
    expect(text.split('\n').slice(-4, -1)).toEqual([
      '✘ a.spec.ts: 2 failed, the first: adds',
      '✘ b.spec.ts: 1 failed',
      `✘ c.spec.ts: 1 failed, the first: ${'x'.repeat(100)}…`,
    ]);
  });
});
