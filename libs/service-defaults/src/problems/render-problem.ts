import { STATUS_CODES } from 'node:http';
import type { Problem } from './problem';

export const PROBLEM_JSON = 'application/problem+json';

/** The RFC 9457 body of a problem. @param instance path of the request, without its query */
export function renderProblem(problem: Problem, instance: string, traceId: string): string {
  const { status, type, title, detail, errors, extensions } = problem;
  return JSON.stringify({
    ...extensions,
    type: type ?? 'about:blank',
    title: title ?? STATUS_CODES[status] ?? 'Error',
    status,
    detail,
    instance,
    traceId,
    errors,
  });
}
