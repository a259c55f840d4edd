import { Inject, Injectable } from '@nestjs/common';
import type { FastifyRequest } from 'fastify';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { tokenFlowOf } from '../token-endpoints/token-endpoints';
import { clientAddress } from './client-address';
import { describeAttempt } from './token-attempt';
import type { TokenAttempt } from './token-attempt';

/** The flows whose bodies name an application or a user. A callback of an identity provider may have members of the same
 *  names that mean something else. */
const NAMING_FLOWS: ReadonlySet<string | null> = new Set(['password', 'trust', 'trust-simple']);

/** The attempt behind each request: one, however many ask for it. */
@Injectable()
export class TokenAttempts {
  private readonly attempts = new WeakMap<object, TokenAttempt>();

  constructor(@Inject(AUTH_CONFIG) private readonly config: AuthConfig) {}

  of(request: FastifyRequest): TokenAttempt {
    const known = this.attempts.get(request.raw);
    if (known !== undefined) return known;
    const attempt = describeAttempt({
      traceId: request.id,
      address: this.addressOf(request),
      applicationKeyHeader: request.headers['x-application-key'],
      body: NAMING_FLOWS.has(tokenFlowOf(request)) ? request.body : null,
    });
    this.attempts.set(request.raw, attempt);
    return attempt;
  }

  addressOf({ raw, headers }: FastifyRequest): string | null {
    return clientAddress(
      raw.socket.remoteAddress,
      headers['x-forwarded-for'],
      this.config.TRUSTED_PROXIES ?? null,
    );
  }
}
