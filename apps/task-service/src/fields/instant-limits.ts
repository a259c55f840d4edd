import { TaskError } from '../problems/task-problem.filter';

const EARLIEST_MS = Date.UTC(2000, 0, 1);
const LATEST_MS = Date.UTC(2200, 0, 1);

/** Instants of tasks lie between the years 2000 and 2200: what is further away is a mistake, and PostgreSQL, JavaScript and ISO 8601
 *  stop agreeing on it. @throws {TaskError} instant-out-of-range */
export function withinLimits(instant: Date): Date {
  if (instant.getTime() < EARLIEST_MS || instant.getTime() > LATEST_MS)
    throw new TaskError('instant-out-of-range');
  return instant;
}
