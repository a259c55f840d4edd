import { Catch, Inject, Logger } from '@nestjs/common';
import type { ArgumentsHost } from '@nestjs/common';
import { ProblemDetailsFilter, problems } from '@platform/service-defaults';
import type { Problem } from '@platform/service-defaults';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { auditedDetail } from '../audit/token-attempt';
import { TokenAuditService } from '../audit/token-audit.service';
import { TokenMetrics } from '../audit/token-metrics.service';
import { TooMuchWorkError } from '../bounded-work';
import { IntrospectionAudit } from '../introspection/introspection-audit.service';
import { UNPROVEN, UnprovenApplication } from '../introspection/unproven-application';
import { redirect, rejectionError, returnAddressOf, returnLocation } from '../openid/application-return';
import { IdentityProviderUnavailableError } from '../openid/provider-metadata.client';
import { TokenRateExceeded } from '../rate-limits/rate-limit';
import { SIGN_IN_INTERRUPTED, SignInInterruptedError } from '../rejections/sign-in-interrupted';
import { isIntrospection, tokenFlowOf } from '../rejections/token-endpoints';
import { TokenRejected, TokenRejectionReason, rejectionStatus } from '../rejections/token-rejection';
import type { TokenFlow } from '../rejections/token-rejection';
import { rejectedTokenResponse } from '../token/token.dto';
import { KerberosUnavailableError } from '../windows/kerberos-acceptor.service';

const TOO_MANY_REQUESTS = 429;
/** Statuses of temporary failures. */
const OUTAGES: ReadonlySet<number> = new Set([TOO_MANY_REQUESTS, 503]);

/**
 * Turns errors into responses. On token endpoints every rejection, even of an unreadable body, is a
 * TokenResponse; outages there, and all errors elsewhere, are problem documents.
 */
@Catch()
export class TokenRejectionFilter extends ProblemDetailsFilter {
  @Inject(TokenMetrics)
  private readonly metrics!: TokenMetrics;

  @Inject(TokenAuditService)
  private readonly audit!: TokenAuditService;

  @Inject(IntrospectionAudit)
  private readonly introspections!: IntrospectionAudit;

  private readonly rejections = new Logger('TokenRejection');

  override catch(error: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<FastifyRequest>();
    const flow = tokenFlowOf(request);
    const reply = host.switchToHttp().getResponse<FastifyReply>();
    if (isIntrospection(request)) this.explainIntrospection(request, reply, error);
    if (flow !== null && error instanceof TokenRejected) this.reject(request, reply, flow, error);
    else if (flow !== null && error instanceof TokenRateExceeded) this.refuse(request, reply, flow, error);
    else super.catch(error, host);
  }

  protected override toProblem(error: unknown): Problem | null {
    // Reached by introspection only: `catch` handles this error on token endpoints.
    if (error instanceof TokenRateExceeded) return tooManyRequests(error);
    if (error instanceof UnprovenApplication) return unproven();
    if (error instanceof TooMuchWorkError)
      return problems.serviceUnavailable('Too many sign-ins at the moment.').problem;
    if (error instanceof SignInInterruptedError)
      return problems.serviceUnavailable(SIGN_IN_INTERRUPTED).problem;
    if (error instanceof KerberosUnavailableError)
      return problems.serviceUnavailable('Windows authentication is not available at the moment.').problem;
    if (error instanceof IdentityProviderUnavailableError)
      return problems.serviceUnavailable('The identity provider is not available at the moment.').problem;
    return null;
  }

  protected override send(problem: Problem, request: FastifyRequest, reply: FastifyReply): void {
    const flow = tokenFlowOf(request);
    if (flow !== null) void reply.header('cache-control', 'no-store');
    const isRefusal = problem.status >= 400 && problem.status < 500 && problem.status !== TOO_MANY_REQUESTS;
    if (flow !== null && isRefusal) {
      const rejection = new TokenRejected(TokenRejectionReason.InvalidRequest, publicDetail(problem));
      this.reject(request, reply, flow, rejection);
      return;
    }
    // An outage or internal error is no verdict on the request, but the attempt is audited all the same.
    if (flow !== null) this.record(request, { flow, status: problem.status, reason: null, detail: null });
    const address = flow === null ? null : returnAddressOf(request);
    if (address === null) super.send(problem, request, reply);
    else {
      const error = OUTAGES.has(problem.status) ? 'temporarily_unavailable' : 'server_error';
      void redirect(reply, 303, returnLocation(address, { error })).send();
    }
  }

  private explainIntrospection(request: FastifyRequest, reply: FastifyReply, error: unknown): void {
    void reply.header('cache-control', 'no-store');
    if (error instanceof TokenRateExceeded)
      this.introspections.explain(request, error.isRepeated ? null : `rate limit by ${error.by}`);
    if (error instanceof UnprovenApplication) this.introspections.explain(request, error.privateDetail);
  }

  private reject(
    request: FastifyRequest,
    reply: FastifyReply,
    flow: TokenFlow,
    rejection: TokenRejected,
  ): void {
    if (reply.sent) return;
    const status = rejectionStatus(flow, rejection.reason, rejection.stage);
    this.metrics.count(flow, rejection.reason);
    const auditedReason = { reason: rejection.reason, detail: auditedDetail(rejection.privateDetail) };
    this.record(request, { flow, status, ...auditedReason });
    // The private detail is logged but never sent: it distinguishes an unknown user from a wrong password.
    const { reason, stage, privateDetail } = rejection;
    this.rejections.log('token request rejected', {
      flow,
      reason: TokenRejectionReason[reason],
      ...(stage === null ? {} : { stage }),
      detail: privateDetail,
    });
    const address = returnAddressOf(request);
    if (address === null) sendRejection(reply, status, rejection);
    else void redirect(reply, 303, returnLocation(address, { error: rejectionError(reason) })).send();
  }

  /**
   * Responds with 429. The reason is InvalidRequest, because clients would take AuthenticationFailed as a
   * wrong password and prompt for it again.
   */
  private refuse(
    request: FastifyRequest,
    reply: FastifyReply,
    flow: TokenFlow,
    { by, message, retryAfterSeconds, isRepeated }: TokenRateExceeded,
  ): void {
    const reason = TokenRejectionReason.InvalidRequest;
    this.metrics.count(flow, reason);
    // Only the first refusal of a bucket is audited, so that a flood of requests does not flood the audit
    // trail.
    if (!isRepeated) {
      this.record(request, { flow, status: TOO_MANY_REQUESTS, reason, detail: `rate limit by ${by}` });
    }
    void reply.header('retry-after', String(retryAfterSeconds));
    sendRejection(reply, TOO_MANY_REQUESTS, { reason, message });
  }

  private record(
    request: FastifyRequest,
    outcome: { flow: TokenFlow; status: number; reason: number | null; detail: string | null },
  ): void {
    this.audit.record({ ...this.audit.attemptOf(request), ...outcome, accessTokenId: null });
  }
}

function tooManyRequests({ message, retryAfterSeconds }: TokenRateExceeded): Problem {
  const headers = { 'Retry-After': String(retryAfterSeconds) };
  return { status: TOO_MANY_REQUESTS, detail: message, headers };
}

function unproven(): Problem {
  return { status: 401, detail: UNPROVEN, headers: { 'WWW-Authenticate': 'Basic realm="platform"' } };
}

function sendRejection(
  reply: FastifyReply,
  status: number,
  { reason, message }: Pick<TokenRejected, 'reason' | 'message'>,
): void {
  void reply
    .code(status)
    .header('cache-control', 'no-store')
    .header('content-type', 'application/json; charset=utf-8')
    .send(JSON.stringify(rejectedTokenResponse(reason, message)));
}

/**
 * Lists the errors of a request by field. Validator messages state the expected value and never repeat the
 * one that was sent.
 */
function publicDetail({ detail = 'The request is not valid.', errors = {} }: Problem): string {
  const fields = Object.entries(errors).map(([field, messages]) => `${field}: ${messages.join(', ')}`);
  return fields.length === 0 ? detail : `${detail} ${fields.join('; ')}`;
}
