import { HttpException } from '@nestjs/common';
import type { Clock } from '@platform/time';
import type { RevocationFeed } from '../revocations/revocation-feed';
import type { AccessTokenFailure, AccessRefusal } from '../token/access-token-error';

/** As much of a response as Express and Fastify have in common. */
export interface ResponseHeaders {
  header(name: string, value: string): unknown;
}

/**
 * The application that the guard stands in: how it refuses, and what it watches. This one suits any Nest
 * application; a subclass suits one with an error format and metrics of its own.
 */
export class AccessTokenHost {
  readonly clock?: Clock;

  /** The exception that refuses a request. */
  refuse({ status, detail, headers }: AccessRefusal, response: ResponseHeaders, cause?: unknown): Error {
    // Nest's own exceptions carry no headers.
    for (const [name, value] of Object.entries(headers)) response.header(name, value);
    return new HttpException({ statusCode: status, message: detail }, status, { cause });
  }

  /** Told of each request that is refused for its token. */
  refused(_reason: AccessTokenFailure | 'unavailable'): void {}

  /** Told once of the feed, before it starts. */
  watch(_revocations: RevocationFeed): void {}
}
