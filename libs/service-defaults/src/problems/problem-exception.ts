import { HttpException } from '@nestjs/common';
import type { Problem } from './problem';

/** An HTTP error that is answered as exactly this problem (RFC 9457). */
export class ProblemException extends HttpException {
  readonly problem: Problem;

  constructor({ cause, ...problem }: Problem & { cause?: unknown }) {
    super(problem.detail ?? problem.title ?? `status ${problem.status}`, problem.status, { cause });
    this.problem = problem;
  }
}

/** A problem that carries its status and, where given, a sentence for the caller. */
function plain(
  status: number,
  detail: string | undefined,
  rest: Omit<Problem, 'status'> = {},
): ProblemException {
  return new ProblemException({ status, ...(detail === undefined ? {} : { detail }), ...rest });
}

/** Builders of the problems that services answer with. `detail` is read by callers: no internals, no secrets. */
export const problems = {
  /** 400, with what is wrong by field. */
  badRequest: (detail?: string, errors?: Record<string, string[]>): ProblemException =>
    plain(400, detail, errors === undefined ? {} : { errors }),
  /** 401 with the `WWW-Authenticate: Bearer` challenge. */
  unauthorized: (detail?: string): ProblemException =>
    plain(401, detail, { headers: { 'WWW-Authenticate': 'Bearer' } }),
  forbidden: (detail?: string): ProblemException => plain(403, detail),
  /** 404; `type` tells the caller's own missing resource from a wrong address. */
  notFound: (detail?: string, type?: string): ProblemException =>
    plain(404, detail, type === undefined ? {} : { type }),
  unsupportedMediaType: (detail?: string): ProblemException => plain(415, detail),
  unprocessable: (detail?: string, extensions?: Record<string, unknown>): ProblemException =>
    plain(422, detail, extensions === undefined ? {} : { extensions }),
  badGateway: (detail?: string): ProblemException => plain(502, detail),
  /** 503 with Retry-After. */
  serviceUnavailable: (detail?: string, retryAfterSeconds = 1): ProblemException =>
    plain(503, detail, { headers: { 'Retry-After': String(retryAfterSeconds) } }),
  gatewayTimeout: (detail?: string): ProblemException => plain(504, detail),
} as const;
