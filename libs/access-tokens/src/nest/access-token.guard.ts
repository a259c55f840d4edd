import { Injectable } from '@nestjs/common';
import type { ExecutionContext } from '@nestjs/common';
import { AuthGuard } from '@nestjs/passport';
import { Metrics, ProblemException, problems } from '@platform/service-defaults';
import type { Counter } from 'prom-client';
import { AccessTokenError, TokenVerificationUnavailableError } from '../token/access-token-error';
import type { AccessTokenFailure } from '../token/access-token-error';
import { AccessTokenVerifier } from '../token/access-token-verifier';
import type { Caller } from '../token/caller';
import { callerOf, RouteAccess } from './access-rules';
import type { AuthenticatedRequest } from './access-rules';
import { ACCESS_TOKEN_STRATEGY, bearerToken, beginVerification, refusalOf } from './access-token.strategy';

const RETRY_AFTER_SECONDS = 1;

/** What callers may read. The other reasons share one sentence: which check a forged token failed is nobody's business. */
const SENTENCES: Partial<Record<AccessTokenFailure, string>> = {
  missing: 'A bearer token is required.',
  expired: 'The access token expired.',
  revoked: 'The access token was revoked.',
};

/** 401 with the challenge of RFC 6750: an error code only when a token was sent. */
function unauthorizedProblem(error: AccessTokenError): ProblemException {
  const detail = SENTENCES[error.reason] ?? 'The access token is not valid.';
  const challenge =
    error.reason === 'missing' ? 'Bearer' : `Bearer error="invalid_token", error_description="${detail}"`;
  return new ProblemException({
    status: 401,
    detail,
    headers: { 'WWW-Authenticate': challenge },
    cause: error,
  });
}

/** 403 with the challenge of RFC 6750. */
function forbiddenProblem(): ProblemException {
  return new ProblemException({
    status: 403,
    detail: 'Your personas and roles do not allow this.',
    headers: { 'WWW-Authenticate': 'Bearer error="insufficient_scope"' },
  });
}

/** The problem that answers a failed verification; any other error is returned as it is. */
export function accessProblem(error: unknown): unknown {
  if (error instanceof AccessTokenError) return unauthorizedProblem(error);
  if (error instanceof TokenVerificationUnavailableError) {
    return problems.serviceUnavailable(
      'Access tokens cannot be verified at the moment.',
      RETRY_AFTER_SECONDS,
    );
  }
  return error;
}

/** Lets a request through when its access token is good and the route's decorators allow its caller: 401, 403, 503. */
@Injectable()
export class AccessTokenGuard extends AuthGuard(ACCESS_TOKEN_STRATEGY) {
  private readonly refusals: Counter<'reason'>;

  constructor(
    private readonly verifier: AccessTokenVerifier,
    private readonly access: RouteAccess,
    metrics: Metrics,
  ) {
    super();
    this.refusals = metrics.counter(
      'access_token_refusals_total',
      'Requests refused for their access token, by reason (unavailable: it could not be verified).',
      ['reason'],
    );
  }

  /** Answers at once for a token verified before: nearly every request, and a promise would cost it several turns. */
  override canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    // Global guards also stand before message handlers; those have no bearer token.
    if (context.getType() !== 'http' || this.access.isPublic(context)) return true;
    const request = context.switchToHttp().getRequest<AuthenticatedRequest>();
    const remembered = this.recall(request);
    if (!remembered) return this.verify(context, request);
    request.user = remembered;
    return this.authorize(context, remembered);
  }

  private async verify(context: ExecutionContext, request: AuthenticatedRequest): Promise<boolean> {
    beginVerification(request, this.verifier);
    await super.canActivate(context);
    return this.authorize(context, callerOf(request));
  }

  private authorize(context: ExecutionContext, caller: Caller): true {
    if (!this.access.allows(context, caller)) throw forbiddenProblem();
    return true;
  }

  /** Passport's verdict: an error, a caller, or in `info` why there is none. */
  override handleRequest<T = Caller>(
    error: unknown,
    caller: T | false | null,
    info: unknown,
    context: ExecutionContext,
  ): T {
    if (error) throw this.refused(error);
    if (caller) return caller;
    throw this.refused(refusalOf(context.switchToHttp().getRequest(), info));
  }

  private recall(request: AuthenticatedRequest): Caller | null {
    const token = bearerToken(request.headers.authorization);
    if (token === null) throw this.refused(new AccessTokenError('missing'));
    try {
      return this.verifier.recall(token);
    } catch (error) {
      throw this.refused(error);
    }
  }

  private refused(error: unknown): unknown {
    if (error instanceof AccessTokenError) this.refusals.inc({ reason: error.reason });
    if (error instanceof TokenVerificationUnavailableError) this.refusals.inc({ reason: 'unavailable' });
    return accessProblem(error);
  }
}
