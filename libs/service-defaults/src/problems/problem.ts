import { STATUS_CODES } from 'node:http';
import { HttpException } from '@nestjs/common';

/** An error response (RFC 9457). `headers` are sent with it and are not part of the body. */
export interface Problem {
  status: number;
  /** URI of the problem type; `about:blank` if the status is enough. */
  type?: string | undefined;
  title?: string | undefined;
  detail?: string | undefined;
  /** Messages by field. */
  errors?: Record<string, string[]> | undefined;
  headers?: Record<string, string>;
  /** Additional members of the body. They cannot replace the standard ones. */
  extensions?: Record<string, unknown> | undefined;
}

export const PROBLEM_JSON = 'application/problem+json';

/**
 * Returns the RFC 9457 body of a problem.
 * @param instance path of the request, without its query
 */
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

/** An HTTP error whose response is exactly this problem (RFC 9457). */
export class ProblemException extends HttpException {
  readonly problem: Problem;

  constructor({ cause, ...problem }: Problem & { cause?: unknown }) {
    super(problem.detail ?? problem.title ?? `status ${problem.status}`, problem.status, { cause });
    this.problem = problem;
  }
}

/** Returns a problem of a status, with an optional sentence for the caller. */
function plain(status: number, detail?: string, rest: Partial<Problem> = {}): ProblemException {
  return new ProblemException({ status, detail, ...rest });
}

/** Builders of the services' problems. Callers read `detail`, so it must hold no internals or secrets. */
export const problems = {
  /** 400, with messages by field. */
  badRequest: (detail?: string, errors?: Record<string, string[]>): ProblemException =>
    plain(400, detail, { errors }),
  /** 401 with the `WWW-Authenticate: Bearer` challenge. */
  unauthorized: (detail?: string): ProblemException =>
    plain(401, detail, { headers: { 'WWW-Authenticate': 'Bearer' } }),
  forbidden: (detail?: string): ProblemException => plain(403, detail),
  /** 404. `type` distinguishes a missing resource from a wrong address. */
  notFound: (detail?: string, type?: string): ProblemException => plain(404, detail, { type }),
  unsupportedMediaType: (detail = DETAILS[415]): ProblemException => plain(415, detail),
  unprocessable: (detail?: string, extensions?: Record<string, unknown>): ProblemException =>
    plain(422, detail, { extensions }),
  badGateway: (detail?: string): ProblemException => plain(502, detail),
  /** 503 with Retry-After. */
  serviceUnavailable: (detail?: string, retryAfterSeconds = 1): ProblemException =>
    plain(503, detail, { headers: { 'Retry-After': String(retryAfterSeconds) } }),
  gatewayTimeout: (detail?: string): ProblemException => plain(504, detail),
} as const;

/** Texts for the statuses that Fastify or Nest raise, whose own messages may quote the request. */
const DETAILS: Partial<Record<number, string>> = {
  400: 'The request could not be understood.',
  404: 'There is nothing at this address.',
  408: 'The request did not arrive in time.',
  413: 'The request body is too large.',
  414: 'The address or one of its parts is too long.',
  415: 'The body must be JSON (application/json), in UTF-8 and uncompressed.',
  417: 'Only the expectation 100-continue is met.',
  429: 'Too many requests at once.',
  431: 'The request headers are too large.',
};

/** Returns the problem of any HTTP error of Nest or Fastify; null for an error without an HTTP status. */
export function httpProblem(error: unknown): Problem | null {
  if (error instanceof ProblemException) return error.problem;
  if (error instanceof HttpException) return fromHttpException(error);
  const status = (error as { statusCode?: unknown } | null | undefined)?.statusCode;
  const isHttp = typeof status === 'number' && status >= 400 && status < 500;
  return isHttp ? defaultProblem(status) : null;
}

/** Returns a problem with the status and its text in `DETAILS`, if there is one. */
export function defaultProblem(status: number): Problem {
  return { status, detail: DETAILS[status] };
}

/**
 * Returns the problem of an HttpException. Keeps the app's own text and drops Nest's texts, which only repeat
 * the status.
 */
function fromHttpException(error: HttpException): Problem {
  const status = error.getStatus();
  const response = error.getResponse();
  const message = typeof response === 'string' ? response : (response as { message?: unknown }).message;
  if (Array.isArray(message)) return { ...defaultProblem(status), errors: { request: message.map(String) } };
  // From 500 on a text may reveal internals. Fastify's texts, as repeated by Nest, add nothing to the status.
  if (typeof message !== 'string' || status >= 500 || message === STATUS_CODES[status])
    return defaultProblem(status);
  return { status, detail: message };
}
