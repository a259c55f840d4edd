import { relative, sep } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { textTable } from '#platform/command-line.ts';

/** The part of Jest's JSON report that is counted. */
export interface JestReport {
  readonly success: boolean;
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  /** Files that could not be loaded; none of their tests counts as failed. */
  readonly numRuntimeErrorTestSuites: number;
  readonly testResults: readonly {
    /** Path of the file. */
    readonly name: string;
    readonly status: string;
    /** Reason why the file as a whole failed, if none of its tests did. */
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

/** Counts a step without tests of its own as one check. */
export function countStep(succeeded: boolean): Count {
  return { passed: succeeded ? 1 : 0, failed: succeeded ? 0 : 1, skipped: 0 };
}

/** Counts the tests of a report; a file that could not be loaded is one failed check. */
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
 * Counts the tests of a step. A missing report is one failed check, and so is a step that failed although
 * every report is green: neither may look like success.
 */
export function countTests(succeeded: boolean, reports: readonly (JestReport | null)[]): Count {
  const total = sum(reports.map((report) => (report === null ? countStep(false) : countReport(report))));
  return !succeeded && total.failed === 0 ? sum([total, countStep(false)]) : total;
}

/** Returns the number of passed tests of each project, one line each. @param root path of the workspace */
export function countByProject({ testResults }: JestReport, root: string): string {
  const passed = new Map<string, number>();
  for (const { name, assertionResults } of testResults) {
    const project = relative(root, name).split(sep).slice(0, 2).join('/');
    const count = assertionResults.filter(({ status }) => status === 'passed').length;
    passed.set(project, (passed.get(project) ?? 0) + count);
  }
  const lines = [...passed].sort(([one], [other]) => one.localeCompare(other));
  return lines.map(([project, count]) => `${String(count).padStart(7)} passed in ${project}`).join('\n');
}

/**
 * Maximum number of lines shown of a failure's message: enough for the expected and the received value, and
 * the first line of the code.
 */
const LINES_PER_FAILURE = 12;
/** Maximum length of a test's name in the last lines, in characters. */
const NAME_LENGTH = 100;

/** A test that failed, or a file that failed as a whole. */
export interface Failure {
  /** Path relative to the workspace. */
  readonly file: string;
  /** Empty if the file could not be loaded. */
  readonly test: string;
  readonly message: string;
}

/** Returns the failed tests of a report. @param root path of the workspace */
export function listFailures({ testResults }: JestReport, root: string): Failure[] {
  return testResults.flatMap(({ name, message, status, assertionResults }) => {
    const file = relative(root, name);
    const failed = assertionResults.filter((test) => test.status === 'failed');
    if (failed.length === 0) return status === 'failed' ? [{ file, test: '', message }] : [];
    return failed.map(({ fullName, failureMessages }) => ({
      file,
      test: fullName,
      message: failureMessages.join('\n'),
    }));
  });
}

/** Returns a failed test with the beginning of its message. */
function describeFailure({ file, test, message }: Failure): string {
  const lines = stripVTControlCharacters(message).split('\n').slice(0, LINES_PER_FAILURE);
  const title = test === '' ? file : `${file} › ${test}`;
  return [`✘ ${title}`, ...lines.map((line) => `    ${line}`)].join('\n');
}

/**
 * Returns one short line for each file with failed tests, for readers who keep only the end of the output.
 */
function listFailedFiles(failures: readonly Failure[]): string[] {
  const files = [...new Set(failures.map(({ file }) => file))];
  return files.map((file) => {
    const failed = failures.filter((failure) => failure.file === file);
    const first = failed[0]?.test ?? '';
    const name = first.length > NAME_LENGTH ? `${first.slice(0, NAME_LENGTH)}…` : first;
    return `✘ ${file}: ${failed.length} failed${name === '' ? '' : `, the first: ${name}`}`;
  });
}

/** A line of the table at the end. */
export interface StepResult {
  readonly name: string;
  readonly count: Count;
  readonly failures: readonly Failure[];
  readonly durationMs: number;
}

/**
 * Returns every failed test with its message, the table, and the files with failed tests. The last line is
 * the total alone: `N passed, N failed`.
 */
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
  return [
    '',
    ...failures.map(describeFailure),
    '',
    ...lines,
    '',
    ...listFailedFiles(failures),
    `${passed} passed, ${failed} failed`,
  ].join('\n');
}
