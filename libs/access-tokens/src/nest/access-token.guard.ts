import { Injectable } from '@nestjs/common';
import type { ExecutionContext } from '@nestjs/common';
import { AuthGuard } from '@nestjs/passport';
import { FORBIDDEN, accessRefusal, bearerToken, AccessTokenError } from '../token/access-token-error';
import type { Caller } from '../token/caller';
import { AccessTokenVerifier } from '../verification/access-token-verifier';
import { callerOf, RouteAccess } from './access-rules';
import type { AuthenticatedRequest } from './access-rules';
import { AccessTokenHost } from './access-token-host';
import type { ResponseHeaders } from './access-token-host';
import { ACCESS_TOKEN_STRATEGY, beginVerification, refusalOf } from './access-token.strategy';

/**
 * Admits a request whose access token is valid and whose caller satisfies the route's decorators. Otherwise
 * 401, 403 or 503.
 */
@Injectable()
export class AccessTokenGuard extends AuthGuard(ACCESS_TOKEN_STRATEGY) {
  constructor(
    private readonly verifier: AccessTokenVerifier,
    private readonly access: RouteAccess,
    private readonly host: AccessTokenHost,
  ) {
    super();
  }

  /**
   * Returns synchronously for a cached token, as nearly every request has one: a promise would delay the
   * request by several microtasks.
   */
  override canActivate(context: ExecutionContext): boolean | Promise<boolean> {
    // Global guards also run for message handlers, which carry no bearer token.
    if (context.getType() !== 'http' || this.access.isPublic(context)) return true;
    // switchToHttp() would allocate three closures per request.
    const request = context.getArgByIndex<AuthenticatedRequest>(0);
    const cached = this.recall(request, context);
    if (!cached) return this.verify(context, request);
    request.user = cached;
    return this.authorize(context, cached);
  }

  private async verify(context: ExecutionContext, request: AuthenticatedRequest): Promise<boolean> {
    beginVerification(request, this.verifier);
    await super.canActivate(context);
    return this.authorize(context, callerOf(request));
  }

  private authorize(context: ExecutionContext, caller: Caller): true {
    if (!this.access.allows(context, caller)) throw this.host.refuse(FORBIDDEN, responseOf(context));
    return true;
  }

  /**
   * Returns the caller that Passport found. Otherwise throws Passport's error, or the refusal for the reason
   * in `info`.
   */
  override handleRequest<T = Caller>(
    error: unknown,
    caller: T | false | null,
    info: unknown,
    context: ExecutionContext,
  ): T {
    if (error) throw this.refused(error, context);
    if (caller) return caller;
    throw this.refused(refusalOf(context.switchToHttp().getRequest(), info), context);
  }

  private recall(request: AuthenticatedRequest, context: ExecutionContext): Caller | null {
    const token = bearerToken(request.headers.authorization);
    if (token === null) throw this.refused(new AccessTokenError('missing'), context);
    try {
      return this.verifier.recall(token);
    } catch (error) {
      throw this.refused(error, context);
    }
  }

  private refused(error: unknown, context: ExecutionContext): unknown {
    const refusal = accessRefusal(error);
    if (refusal === null) return error;
    this.host.refused(error instanceof AccessTokenError ? error.reason : 'unavailable');
    return this.host.refuse(refusal, responseOf(context), error);
  }
}

function responseOf(context: ExecutionContext): ResponseHeaders {
  return context.switchToHttp().getResponse();
}
