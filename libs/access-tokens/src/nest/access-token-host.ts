import { HttpException } from '@nestjs/common';
import type { Clock } from '@platform/time';
import type { RevocationFeed } from '../revocations/revocation-feed';
import type { AccessTokenFailure, AccessRefusal } from '../token/access-token-error';

/** The part of a response that Express and Fastify share. */
export interface ResponseHeaders {
  header(name: string, value: string): unknown;
}

/**
 * Hooks with which the application customises the guard: how to refuse a request, and what to observe. This
 * class works in any Nest application; subclass it for another error format or for metrics.
 */
export class AccessTokenHost {
  readonly clock?: Clock;

  /** Returns the exception to throw for a refused request. */
  refuse({ status, detail, headers }: AccessRefusal, response: ResponseHeaders, cause?: unknown): Error {
    // Set on the response itself, because Nest's exceptions carry no headers.
    for (const [name, value] of Object.entries(headers)) response.header(name, value);
    return new HttpException({ statusCode: status, message: detail }, status, { cause });
  }

  /**
   * Called for every request that is refused because its token is invalid or cannot be verified
   * (`unavailable`).
   */
  refused(_reason: AccessTokenFailure | 'unavailable'): void {}

  /** Called once with the revocation feed, before the feed starts. */
  watch(_revocations: RevocationFeed): void {}
}
