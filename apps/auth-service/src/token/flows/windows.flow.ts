import { Headers, Inject, Req, Res } from '@nestjs/common';
import { ApiHeader, ApiOperation, ApiResponse } from '@platform/open-api';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { TokenApplicationsService } from '../../applications/token-applications.service';
import { AUTH_CONFIG } from '../../config';
import type { AuthConfig } from '../../config';
import { CombinedStoresRepository } from '../../identity/combined-stores.repository';
import { WindowsSignIn } from '../../windows/windows-sign-in';
import type { TokenResponse } from '../token.dto';
import { APPLICATION_KEY, TokenFlowController, TokenGet } from '../token-flow.decorator';
import { TokenIssuer } from '../token-issuer.service';

const CHALLENGE_HEADER = 'www-authenticate';

const NEGOTIATE = {
  'WWW-Authenticate': {
    description:
      '`Negotiate`, if Kerberos is enabled. On success it also has the confirmation for the client.',
    schema: { type: 'string' },
    required: false,
    example: 'Negotiate',
  },
} as const;

/** Windows authentication of internal users. Obsolete, but still available. */
@TokenFlowController()
export class WindowsFlow {
  constructor(
    private readonly signIn: WindowsSignIn,
    private readonly applications: TokenApplicationsService,
    private readonly stores: CombinedStoresRepository,
    private readonly tokens: TokenIssuer,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
  ) {}

  @TokenGet('user/winauth', {
    flow: 'windows',
    outage: 'the database or the key table',
    successor: '/auth/token/sso/initiate',
    headers: NEGOTIATE,
  })
  @ApiOperation({
    operationId: 'signInWithWindows',
    summary: 'Windows authentication',
    description:
      'Kerberos (SPNEGO: `Authorization: Negotiate <ticket>`, which browsers in the domain send automatically) or a trusted proxy. ' +
      'If the service does not enable it: 401, reason 8. Confidential applications get no tokens from it (401, reason 8).',
    deprecated: true,
  })
  @ApiHeader(APPLICATION_KEY)
  @ApiResponse({ status: 204, description: 'Response to HEAD, which does not start a sign-in.' })
  async issue(
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
    @Headers('x-application-key') applicationKey: string | undefined,
  ): Promise<TokenResponse> {
    // Sets the header before anything can be refused, because a rejection keeps the headers set before it.
    if (this.signIn.challenge !== null) void reply.header(CHALLENGE_HEADER, this.signIn.challenge);
    const { accountKey, confirmation } = await this.signIn.authenticate(request.headers);
    const read = await this.applications.read(applicationKey ?? this.config.WINDOWS_FLOW_DEFAULT_APPLICATION);
    const evidenceAt = this.applications.permitUnproven('windows', read);
    const response = await this.tokens.issue({
      flow: 'windows',
      application: read.application,
      evidenceAt,
      resolution: await this.stores.resolve({ by: 'windows-account', accountKey }),
      // The user has signed in with the internal account itself, so InternalPartner need not be requested.
      personas: { kind: 'login', grantAsInternalPartner: true },
    });
    if (confirmation === null) void reply.removeHeader(CHALLENGE_HEADER);
    else void reply.header(CHALLENGE_HEADER, confirmation);
    return response;
  }
}
