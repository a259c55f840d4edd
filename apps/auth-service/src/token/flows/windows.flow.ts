import { Header, Headers, Inject, Req, Res } from '@nestjs/common';
import { Documented } from '@platform/service-defaults';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AUTH_CONFIG } from '../../config';
import type { AuthConfig } from '../../config';
import { DEPRECATED_SINCE, successorLink } from '../../deprecation';
import { IdentitiesService } from '../../identity/identities.service';
import { WindowsSignIn } from '../../windows/windows-sign-in';
import { WINDOWS } from '../flow-docs';
import { TokenApplicationsService } from '../token-applications.service';
import { TokenFlowController, TokenGet } from '../token-flow.decorator';
import { TokenIssuer } from '../token-issuer.service';
import type { TokenResponse } from '../token-response';

const CHALLENGE_HEADER = 'www-authenticate';

/** Windows authentication of internal users. Obsolete, and available as long as somebody calls it. */
@TokenFlowController()
export class WindowsFlow {
  constructor(
    private readonly signIn: WindowsSignIn,
    private readonly applications: TokenApplicationsService,
    private readonly identities: IdentitiesService,
    private readonly tokens: TokenIssuer,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
  ) {}

  @TokenGet('user/winauth')
  @Documented(WINDOWS)
  @Header('Deprecation', DEPRECATED_SINCE)
  @Header('Link', successorLink('/auth/token/sso/initiate'))
  async issue(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Headers('x-application-key') applicationKey: string | undefined,
  ): Promise<TokenResponse> {
    // Set before anything can fail: a refusal keeps what has been set by then.
    if (this.signIn.challenge !== null) void reply.header(CHALLENGE_HEADER, this.signIn.challenge);
    const { accountKey, confirmation } = await this.signIn.authenticate(request.headers);
    const application = await this.applications.find(
      'windows',
      applicationKey ?? this.config.WINDOWS_FLOW_DEFAULT_APPLICATION,
    );
    const response = await this.tokens.issue({
      flow: 'windows',
      application,
      resolution: await this.identities.resolve({ by: 'windows-account', accountKey }),
      // The internal account itself has signed in, so its persona needs no asking for.
      personas: { kind: 'login', grantAsInternalPartner: true },
    });
    if (confirmation === null) void reply.removeHeader(CHALLENGE_HEADER);
    else void reply.header(CHALLENGE_HEADER, confirmation);
    return response;
  }
}
