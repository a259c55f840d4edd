import { relative, sep } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { textTable } from '#platform/command-line.ts';

/** The part of Jest's JSON report that is counted. */
export interface JestReport {
  readonly success: boolean;
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  /** Files that could not even be loaded: none of their tests is among the failed ones. */
  readonly numRuntimeErrorTestSuites: number;
  /** Missing in the report of a program that counts its checks itself, and prints what failed. */
  readonly testResults?: readonly {
    /** Path of the file. */
    readonly name: string;
    readonly status: string;
    /** Why the file as a whole failed, when none of its tests did. */
    readonly message: string;
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
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

/** The passed tests of each project, one line each. @param root path of the workspace */
export function countByProject({ testResults = [] }: JestReport, root: string): string {
  const passed = new Map<string, number>();
  for (const { name, assertionResults } of testResults) {
    const project = relative(root, name).split(sep).slice(0, 2).join('/');
    const count = assertionResults.filter(({ status }) => status === 'passed').length;
    passed.set(project, (passed.get(project) ?? 0) + count);
  }
  const lines = [...passed].sort(([one], [other]) => one.localeCompare(other));
  return lines.map(([project, count]) => `${String(count).padStart(7)} passed in ${project}`).join('\n');
}

/** Lines of a message that are shown: what was expected, what came, and the first line of the code. */
const LINES_PER_FAILURE = 12;

/** Each failed test with its file and the beginning of its message. @param root path of the workspace */
export function listFailures({ testResults = [] }: JestReport, root: string): string[] {
  return testResults.flatMap(({ name, message, status, assertionResults }) => {
    const file = relative(root, name);
    const failed = assertionResults.filter((test) => test.status === 'failed');
    if (failed.length === 0) return status === 'failed' ? [describeFailure(file, message)] : [];
    return failed.map(({ fullName, failureMessages }) =>
      describeFailure(`${file} › ${fullName}`, failureMessages.join('\n')),
    );
  });
}

function describeFailure(title: string, message: string): string {
  const lines = stripVTControlCharacters(message).split('\n').slice(0, LINES_PER_FAILURE);
  return [`✘ ${title}`, ...lines.map((line) => `    ${line}`)].join('\n');
}

/** One line of the table at the end. */
export interface StepResult {
  readonly name: string;
  readonly count: Count;
  /** The failed tests, each as it is printed. */
  readonly failures: readonly string[];
  readonly durationMs: number;
}

/** Every failed test, then the table; the last line is the total alone: `N passed, N failed`. */
export function summarise(results: readonly StepResult[]): string {
  const rows = results.map(({ name, count, durationMs }) => [
    `${count.failed === 0 ? '✔' : '✘'} ${name}`,
    `${(durationMs / 1000).toFixed(1)} s`,
    String(count.passed),
    String(count.failed),
    String(count.skipped),
  ]);
  const lines = textTable(['step', 'took', 'passed', 'failed', 'skipped'], rows);
  const { passed, failed } = sum(results.map(({ count }) => count));
  const failures = results.flatMap((result) => result.failures);
  return ['', ...failures, '', ...lines, '', `${passed} passed, ${failed} failed`].join('\n');
}
