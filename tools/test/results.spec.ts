import { countReport, countStep, countTests, summarise, type JestReport } from './results.ts';

const report = (overrides: Partial<JestReport> = {}): JestReport => ({
  success: true,
  numPassedTests: 5,
  numFailedTests: 0,
  numPendingTests: 0,
  numRuntimeErrorTestSuites: 0,
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

  it('does not take a failed step for a success because every report is green', () => {
    expect(countTests(false, [report()]).failed).toBe(1);
  });
});

describe('summarise', () => {
  it('ends with the total alone on its line', () => {
    const text = summarise([
      { name: 'format', count: countStep(true), durationMs: 1_200 },
      { name: 'unit', count: countTests(true, [report(), null]), durationMs: 60_000 },
    ]);
    expect(text.split('\n').at(-1)).toBe('6 passed, 1 failed');
    expect(text).toContain('✘ unit      60.0 s   5 passed, 1 failed');
  });
});
