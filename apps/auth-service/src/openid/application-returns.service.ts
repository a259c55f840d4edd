import { Injectable } from '@nestjs/common';
import { TokenApplicationsService } from '../applications/token-applications.service';
import { currentAttempt, noteInAttempt } from '../audit/token-attempt';
import { TokenAuditService } from '../audit/token-audit.service';
import { TokenMetrics } from '../audit/token-metrics.service';
import type { Resolution } from '../identity/identity';
import { TokenRejected, TokenRejectionReason } from '../rejections/token-rejection';
import { notResolved } from '../rejections/unresolved-user';
import { codeChallenge, returnLocation, returnState, returnTo } from './application-return';
import type { ApplicationReturn } from './application-return';
import { SignOnCodesRepository } from './sign-on-codes.repository';
import type { ProvenSignOn } from './single-sign-on.service';

/** Sign-ins that return to an application's registered address with a code for its tokens. */
@Injectable()
export class ApplicationReturns {
  constructor(
    private readonly applications: TokenApplicationsService,
    private readonly codes: SignOnCodesRepository,
    private readonly metrics: TokenMetrics,
    private readonly audit: TokenAuditService,
  ) {}

  /**
   * Reads the application's address from the query. Returns null if the query names none: the sign-in then
   * ends at this service. Once the address is verified, any response to the request redirects there.
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
    // Unknown applications and unknown addresses get the same response, because the caller has proved nothing
    // yet.
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
   * Makes responses redirect to the address that the sign-in started with.
   * @throws {TokenRejected} InvalidRequest if the application has withdrawn the address since
   */
  async resume(request: { raw: object }, target: ApplicationReturn): Promise<void> {
    await this.assertRegistered(target.applicationKey, target.url);
    returnTo(request, target);
  }

  private async assertRegistered(applicationKey: string, url: string): Promise<void> {
    if (await this.codes.mayReturnTo(applicationKey, url)) return;
    throw invalid('This application has not registered this returnUrl.');
  }

  /**
   * Returns the application's address with a code for the completed sign-in.
   * @throws {TokenRejected} AuthenticationFailed when the signed-in user is unknown
   */
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
