/** SQLSTATE classes that tell of a defect: 22 (a value that PostgreSQL cannot store) and 42 (a wrong statement, or a missing right). */
const DEFECT_SQLSTATE = /"code":"(?:22|42)[0-9A-Z]{3}"/;
const ERROR_LEVEL = /^\{"level":"(?:error|fatal)"/;

/**
 * The lines of a service's log that no outage explains: those at level `error` or `fatal`, and at any level those with an error of
 * PostgreSQL that only a change of code, grants or schema can end. A service logs outages and refused requests as warnings.
 * @param log lines of JSON; other lines are ignored
 */
export function defectsInLog(log: string): string[] {
  return log
    .split('\n')
    .filter((line) => line.startsWith('{') && (ERROR_LEVEL.test(line) || DEFECT_SQLSTATE.test(line)));
}
