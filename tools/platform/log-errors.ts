/**
 * SQLSTATE classes that tell of a defect: 22 (a value that PostgreSQL cannot store) and 42 (a wrong
 * statement, or a missing right).
 */
const DEFECT_SQLSTATE = /"code":"(?:22|42)[0-9A-Z]{3}"/;
const ERROR_LEVEL = /^\{"level":"(?:error|fatal)"/;
/**
 * What only the code can be the cause of. `fetch` tells of lost connections by TypeErrors of its own, and of
 * answers that are no JSON by SyntaxErrors.
 */
const PROGRAMMING_ERROR =
  /"type":"(?:TypeError","message":"(?!fetch failed|terminated)|RangeError"|ReferenceError"|AssertionError")/;
/** What RecurringJob says. */
const FAILED_JOB = '"msg":"failed, and will run again"';
/**
 * Errors of our own, of the operating system, of PostgreSQL (classes 08 and 57P), and of its driver, which
 * has no codes.
 */
const OUTAGE =
  /"type":"(?:Database|Bus)UnavailableError"|"code":"(?:E[A-Z]+|08[0-9A-Z]{3}|57P[0-9]{2})"|"message":"(?:Connection terminated|timeout exceeded when trying to connect)/;

/**
 * The lines of a service's log that no outage explains: those at level `error` or `fatal`, and at any level
 * those with an error that only a change of code, grants or schema can end. A service logs outages and
 * refused requests as warnings.
 * @param log lines of JSON; other lines are ignored
 */
export function defectsInLog(log: string): string[] {
  return linesOfServices(log).filter((line) =>
    [ERROR_LEVEL, DEFECT_SQLSTATE, PROGRAMMING_ERROR].some((pattern) => pattern.test(line)),
  );
}

/** The lines of a service's log that tell of a recurring job that failed of something else than an outage. */
export function failedJobsInLog(log: string): string[] {
  return linesOfServices(log).filter((line) => line.includes(FAILED_JOB) && !OUTAGE.test(line));
}

/** The lines of a service's log at level `error` or `fatal`. */
export function errorLines(log: string): string[] {
  return linesOfServices(log).filter((line) => ERROR_LEVEL.test(line));
}

function linesOfServices(log: string): string[] {
  return log.split('\n').filter((line) => line.startsWith('{"level":'));
}
