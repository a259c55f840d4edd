/** The part of Jest's JSON report that is counted. */
export interface JestReport {
  readonly success: boolean;
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  /** Files that could not even be loaded: none of their tests is among the failed ones. */
  readonly numRuntimeErrorTestSuites: number;
}

/** Passed, failed and skipped checks. */
export interface Count {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

const NOTHING: Count = { passed: 0, failed: 0, skipped: 0 };

/** Adds counts up. */
function sum(counts: readonly Count[]): Count {
  return counts.reduce(
    (total, count) => ({
      passed: total.passed + count.passed,
      failed: total.failed + count.failed,
      skipped: total.skipped + count.skipped,
    }),
    NOTHING,
  );
}

/** A step without tests of its own is one check. */
export function countStep(succeeded: boolean): Count {
  return { passed: succeeded ? 1 : 0, failed: succeeded ? 0 : 1, skipped: 0 };
}

/** What a report says; a file that could not be loaded is one failed check. */
export function countReport(report: JestReport): Count {
  const failed = report.numFailedTests + report.numRuntimeErrorTestSuites;
  return {
    passed: report.numPassedTests,
    // Jest can also fail as a whole (a broken global set-up, say) without a failed test.
    failed: failed === 0 && !report.success ? 1 : failed,
    skipped: report.numPendingTests,
  };
}

/**
 * What a step that runs tests found. A project whose report is missing is one failed check, and so is a step that failed though
 * every report says otherwise: neither may look like success.
 */
export function countTests(succeeded: boolean, reports: readonly (JestReport | null)[]): Count {
  const total = sum(reports.map((report) => (report === null ? countStep(false) : countReport(report))));
  return !succeeded && total.failed === 0 ? sum([total, countStep(false)]) : total;
}

/** One line of the table at the end. */
export interface StepResult {
  readonly name: string;
  readonly count: Count;
  readonly durationMs: number;
}

/** The table at the end; its last line is the total alone: `N passed, N failed`. */
export function summarise(results: readonly StepResult[]): string {
  const width = Math.max(...results.map(({ name }) => name.length));
  const lines = results.map(({ name, count, durationMs }) => {
    const mark = count.failed === 0 ? '✔' : '✘';
    const skipped = count.skipped > 0 ? `, ${count.skipped} skipped` : '';
    const seconds = (durationMs / 1000).toFixed(1).padStart(7);
    return `${mark} ${name.padEnd(width)} ${seconds} s   ${count.passed} passed, ${count.failed} failed${skipped}`;
  });
  const { passed, failed } = sum(results.map(({ count }) => count));
  return ['', ...lines, '', `${passed} passed, ${failed} failed`].join('\n');
}
