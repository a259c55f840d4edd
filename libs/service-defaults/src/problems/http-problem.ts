import { HttpException } from '@nestjs/common';
import type { Problem } from './problem';
import { ProblemException } from './problem-exception';

/** What callers read about statuses that Fastify or Nest raise by themselves; their own texts may quote the request. */
const DETAILS: Partial<Record<number, string>> = {
  400: 'The request could not be understood.',
  404: 'There is nothing at this address.',
  408: 'The request did not arrive in time.',
  413: 'The request body is too large.',
  414: 'The address or one of its parts is too long.',
  415: 'This content type is not supported.',
  431: 'The request headers are too large.',
};

/** The problem of a Nest or Fastify HTTP error, of any kind; null for an error that carries no HTTP status. */
export function httpProblem(error: unknown): Problem | null {
  if (error instanceof ProblemException) return error.problem;
  if (error instanceof HttpException) return fromHttpException(error);
  const status = (error as { statusCode?: unknown } | null | undefined)?.statusCode;
  const isHttp = typeof status === 'number' && status >= 400 && status < 500;
  return isHttp ? defaultProblem(status) : null;
}

/** The problem of a status nobody said more about. */
export function defaultProblem(status: number): Problem {
  const detail = DETAILS[status];
  return detail === undefined ? { status } : { status, detail };
}

/** Keeps what the app itself wrote into an exception; drops Nest's own texts, which only repeat the status. */
function fromHttpException(error: HttpException): Problem {
  const status = error.getStatus();
  const response = error.getResponse();
  const message = typeof response === 'string' ? response : (response as { message?: unknown }).message;
  if (Array.isArray(message)) return { ...defaultProblem(status), errors: { request: message.map(String) } };
  // Above 499 a text may tell internals.
  if (typeof message !== 'string' || status >= 500) return defaultProblem(status);
  return { status, detail: message };
}
