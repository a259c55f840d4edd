import { Catch, Inject, Logger } from '@nestjs/common';
import type { ArgumentsHost } from '@nestjs/common';
import { ProblemDetailsFilter, problems } from '@platform/service-defaults';
import type { Problem } from '@platform/service-defaults';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { TooMuchWorkError } from '../identity/passwords/bounded-work';
import { IdentityProviderUnavailableError } from '../openid/identity-provider-error';
import type { TokenFlow } from './rejection';
import { TokenRejected, TokenRejectionReason, rejectionStatus } from './rejection';
import { findTokenFlow } from './token-endpoints';
import { TokenMetrics } from './token-metrics.service';
import { rejectedTokenResponse } from './token-response';
import { KerberosUnavailableError } from './windows/kerberos-acceptor.service';

const TOO_MANY_REQUESTS = 429;

/** Answers errors: on token endpoints every refusal is a TokenResponse, unreadable bodies included; outages there, and everything
 *  elsewhere, are problems. */
@Catch()
export class TokenRejectionFilter extends ProblemDetailsFilter {
  @Inject(TokenMetrics)
  private readonly metrics!: TokenMetrics;

  private readonly rejections = new Logger('TokenRejection');

  override catch(error: unknown, host: ArgumentsHost): void {
    const request = host.switchToHttp().getRequest<FastifyRequest>();
    const flow = findTokenFlow(request.method, request.url);
    if (flow === null || !(error instanceof TokenRejected)) {
      super.catch(error, host);
      return;
    }
    this.reject(host.switchToHttp().getResponse<FastifyReply>(), flow, error);
  }

  protected override toProblem(error: unknown): Problem | null {
    if (error instanceof TooMuchWorkError)
      return problems.serviceUnavailable('Too many sign-ins at the moment.').problem;
    if (error instanceof KerberosUnavailableError)
      return problems.serviceUnavailable('Windows authentication is not available at the moment.').problem;
    if (error instanceof IdentityProviderUnavailableError)
      return problems.serviceUnavailable('The identity provider is not available at the moment.').problem;
    return null;
  }

  protected override send(problem: Problem, request: FastifyRequest, reply: FastifyReply): void {
    const flow = findTokenFlow(request.method, request.url);
    if (flow !== null) void reply.header('cache-control', 'no-store');
    const isRefusal = problem.status >= 400 && problem.status < 500 && problem.status !== TOO_MANY_REQUESTS;
    if (flow === null || !isRefusal) super.send(problem, request, reply);
    else
      this.reject(reply, flow, new TokenRejected(TokenRejectionReason.InvalidRequest, publicDetail(problem)));
  }

  private reject(reply: FastifyReply, flow: TokenFlow, rejection: TokenRejected): void {
    if (reply.sent) return;
    this.metrics.count(flow, rejection.reason);
    // The private detail is for us alone: it tells unknown from wrong.
    const { reason, stage, privateDetail } = rejection;
    this.rejections.log('token request rejected', {
      flow,
      reason: TokenRejectionReason[reason],
      stage,
      detail: privateDetail,
    });
    void reply
      .code(rejectionStatus(flow, rejection.reason, rejection.stage))
      .header('cache-control', 'no-store')
      .header('content-type', 'application/json; charset=utf-8')
      .send(JSON.stringify(rejectedTokenResponse(rejection.reason, rejection.message)));
  }
}

/** What was wrong with the request, by field. Messages of the validators say what is expected, never what was sent. */
function publicDetail({ detail = 'The request is not valid.', errors = {} }: Problem): string {
  const fields = Object.entries(errors).map(([field, messages]) => `${field}: ${messages.join(', ')}`);
  return fields.length === 0 ? detail : `${detail} ${fields.join('; ')}`;
}
