/**
 * SQLSTATE classes of defects: 22 (a value that PostgreSQL cannot store) and 42 (a wrong statement or a
 * missing right).
 */
const DEFECT_SQLSTATE = /"code":"(?:22|42)[0-9A-Z]{3}"/;
const ERROR_LEVEL = /^\{"level":"(?:error|fatal)"/;
/**
 * Errors that only our code can cause. The pattern excludes the TypeErrors by which `fetch` reports lost
 * connections, and all SyntaxErrors, because `fetch` reports responses that are not JSON by them.
 */
const PROGRAMMING_ERROR =
  /"type":"(?:TypeError","message":"(?!fetch failed|terminated)|RangeError"|ReferenceError"|AssertionError")/;
/** Message of RecurringJob for a failed run. */
const FAILED_JOB = '"msg":"failed, and will run again"';
/**
 * Errors of an outage: our own, those of the operating system, of PostgreSQL (classes 08 and 57P), and of its
 * driver, which has no codes.
 */
const OUTAGE =
  /"type":"(?:Database|Bus)UnavailableError"|"code":"(?:E[A-Z]+|08[0-9A-Z]{3}|57P[0-9]{2})"|"message":"(?:Connection terminated|timeout exceeded when trying to connect)/;

/**
 * Returns the lines of a service's log that no outage explains: those at level `error` or `fatal`, and at any
 * level those with an error that only a change of code, grants or schema can fix. A service logs outages and
 * refused requests as warnings.
 * @param log lines of JSON; other lines are ignored
 */
export function defectsInLog(log: string): string[] {
  return linesOfServices(log).filter((line) =>
    [ERROR_LEVEL, DEFECT_SQLSTATE, PROGRAMMING_ERROR].some((pattern) => pattern.test(line)),
  );
}

/** Returns the lines about a recurring job that failed for another reason than an outage. */
export function failedJobsInLog(log: string): string[] {
  return linesOfServices(log).filter((line) => line.includes(FAILED_JOB) && !OUTAGE.test(line));
}

/** Returns the lines of a service's log at level `error` or `fatal`. */
export function errorLines(log: string): string[] {
  return linesOfServices(log).filter((line) => ERROR_LEVEL.test(line));
}

function linesOfServices(log: string): string[] {
  return log.split('\n').filter((line) => line.startsWith('{"level":'));
}
