import { Injectable } from '@nestjs/common';
import { currentAttempt, noteInAttempt } from '../audit/token-attempt';
import { TokenAuditService } from '../audit/token-audit.service';
import type { Resolution } from '../identity/identity';
import { TokenApplicationsService } from '../token/token-applications.service';
import { notResolved } from '../token/token-issuer.service';
import { TokenMetrics } from '../token/token-metrics.service';
import { TokenRejected, TokenRejectionReason } from '../rejections/token-rejection';
import { codeChallenge, returnLocation, returnState, returnTo } from './application-return';
import type { ApplicationReturn } from './application-return';
import { SignOnCodesRepository } from './sign-on-codes.repository';
import type { ProvenSignOn } from './single-sign-on.service';

/** Sign-ins that end at an application: they begin with its address, and it gets a code for its tokens. */
@Injectable()
export class ApplicationReturns {
  constructor(
    private readonly applications: TokenApplicationsService,
    private readonly codes: SignOnCodesRepository,
    private readonly metrics: TokenMetrics,
    private readonly audit: TokenAuditService,
  ) {}

  /**
   * Where a sign-in with these parameters is to end; null: nowhere but here. Once the address is known to be
   * the application's own, the request is responded to there.
   * @throws {TokenRejected} InvalidRequest, or InvalidGrant when the application may not use the flow
   */
  async read(
    request: { raw: object },
    query: Readonly<Record<string, unknown>>,
  ): Promise<ApplicationReturn | null> {
    const { applicationKey, returnUrl } = query;
    if (returnUrl === undefined) return null;
    if (typeof returnUrl !== 'string' || typeof applicationKey !== 'string')
      throw invalid('applicationKey and returnUrl are required, each once.');
    // One answer for unknown applications and addresses: nobody has proved anything yet.
    await this.assertRegistered(applicationKey, returnUrl);
    await this.applications.assertPermitted('code', applicationKey);
    const state = returnState.nullable().safeParse(query['state'] ?? null);
    returnTo(request, { url: returnUrl, state: state.success ? state.data : null });
    const challenge = codeChallenge.safeParse(query['codeChallenge']);
    if (!state.success || !challenge.success)
      throw invalid('state is too long, or codeChallenge is not one of S256.');
    return { applicationKey, url: returnUrl, state: state.data, codeChallenge: challenge.data };
  }

  /**
   * Has a request responded to at the address that its sign-in began with, if the application has not
   * withdrawn that meanwhile.
   * @throws {TokenRejected} InvalidRequest
   */
  async resume(request: { raw: object }, target: ApplicationReturn): Promise<void> {
    await this.assertRegistered(target.applicationKey, target.url);
    returnTo(request, target);
  }

  private async assertRegistered(applicationKey: string, url: string): Promise<void> {
    if (await this.codes.mayReturnTo(applicationKey, url)) return;
    throw invalid('This application has not registered this returnUrl.');
  }

  /** The address with which a completed sign-in goes back to its application.
   *  @throws {TokenRejected} AuthenticationFailed when nobody known has signed in */
  async complete(target: ApplicationReturn, signedIn: ProvenSignOn, resolution: Resolution): Promise<string> {
    const { applicationKey } = target;
    const subject = resolution.outcome === 'resolved' ? resolution.identity.subject : null;
    noteInAttempt({ applicationKey, subject });
    if (resolution.outcome !== 'resolved') throw notResolved(resolution.outcome);
    const location = returnLocation(target, { code: await this.codes.create(target, signedIn) });
    const reason = TokenRejectionReason.Successful;
    this.metrics.count('openid', reason);
    const detail = 'returned to the application';
    this.audit.record({
      ...currentAttempt(),
      flow: 'openid',
      status: 200,
      reason,
      detail,
      accessTokenId: null,
    });
    return location;
  }
}

function invalid(detail: string): TokenRejected {
  return new TokenRejected(TokenRejectionReason.InvalidRequest, detail);
}
