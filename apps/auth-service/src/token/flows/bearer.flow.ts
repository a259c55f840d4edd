import { Body, Headers, Inject, Query } from '@nestjs/common';
import { AccessTokenError, AccessTokenVerifier, accessProblem, bearerToken } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { ApiBody, ApiOperation, ApiSecurity } from '@platform/open-api';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { noteInAttempt } from '../../audit/token-attempt';
import { AUTH_CONFIG } from '../../config';
import type { AuthConfig } from '../../config';
import { IdentitiesService } from '../../identity/identities.service';
import { TokenApplicationsService } from '../token-applications.service';
import { TokenFlowController, TokenPost } from '../token-flow.decorator';
import { TokenIssuer } from '../token-issuer.service';
import { TokenRejected, TokenRejectionReason } from '../../rejections/token-rejection';
import type { TokenResponse } from '../token.dto';

export class BearerQueryDto extends createZodDto(
  z.object({
    bearerTokenOverride: z.string().max(16_384).optional().meta({
      description: 'Replaces the header. For test environments; ignored unless switched on.',
    }),
  }),
) {}

export class TrustedTokenDto extends createZodDto(
  z.object({ token: z.string().max(16_384).nullish() }).default({}),
) {}

/** A valid access token for a fresh one. */
@TokenFlowController()
export class BearerFlow {
  constructor(
    private readonly verifier: AccessTokenVerifier,
    private readonly applications: TokenApplicationsService,
    private readonly identities: IdentitiesService,
    private readonly tokens: TokenIssuer,
    @Inject(CLOCK) private readonly clock: Clock,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
  ) {}

  @TokenPost('bearer', { flow: 'bearer' })
  @ApiOperation({
    operationId: 'exchangeBearerToken',
    summary: 'Exchange a valid access token for a fresh one',
    description:
      'The same user, at most the same personas, the same `auth_time`: a sign-in more than 365 days ago is not extended.',
  })
  @ApiSecurity({})
  @ApiSecurity('accessToken')
  async issue(
    @Headers('authorization') authorization: string | undefined,
    @Query() { bearerTokenOverride }: BearerQueryDto,
  ): Promise<TokenResponse> {
    const override = this.config.BEARER_TOKEN_OVERRIDE_ENABLED ? bearerTokenOverride : undefined;
    const caller = await this.verify(override ?? bearerToken(authorization));
    noteInAttempt({ applicationKey: caller.clientId, subject: caller.subject });
    // Exchanging again and again must not keep one sign-in alive for ever.
    const ageMs = this.clock.now().getTime() - caller.authTime.getTime();
    if (ageMs > this.config.BEARER_MAX_AGE * 1_000) throw notValid('the sign-in is too long ago');
    const [application, resolution] = await Promise.all([
      this.applications.find('bearer', caller.clientId),
      this.identities.resolveCaller(caller),
    ]);
    return this.tokens.renew({ application, resolution, accessTokenOf: caller });
  }

  /** Obsolete second name of `bearer`, which also takes the token from the body. */
  @TokenPost('trustedToken', { flow: 'bearer', successor: '/auth/token/bearer' })
  @ApiOperation({
    operationId: 'exchangeTrustedToken',
    summary: 'Second name of bearer',
    description:
      'Takes the token from the body too. The example holds none, and without a header it is refused: 401, reason 2.',
    deprecated: true,
  })
  @ApiSecurity({})
  @ApiSecurity('accessToken')
  @ApiBody({
    type: TrustedTokenDto,
    required: false,
    examples: { body: { summary: 'The token in the body', value: { token: '<ACCESS_TOKEN>' } } },
  })
  trustedToken(
    @Headers('authorization') authorization: string | undefined,
    @Query() query: BearerQueryDto,
    @Body() body: TrustedTokenDto,
  ): Promise<TokenResponse> {
    const token = body.token ?? null;
    const fromBody = token === null ? undefined : `Bearer ${token}`;
    return this.issue(authorization ?? fromBody, query);
  }

  private async verify(token: string | null): Promise<Caller> {
    if (token === null) throw notValid('no readable token');
    try {
      return await this.verifier.verify(token);
    } catch (error) {
      // Keys or revocations out of reach are an outage, not a verdict on the token.
      if (!(error instanceof AccessTokenError)) throw accessProblem(error);
      if (error.reason !== 'revoked') throw notValid(error.reason, error);
      throw new TokenRejected(TokenRejectionReason.TokenRevoked, 'The token has been revoked.', {
        cause: error,
      });
    }
  }
}

function notValid(privateDetail: string, cause?: unknown): TokenRejected {
  const detail = 'The access token is not valid.';
  return new TokenRejected(TokenRejectionReason.AccessTokenIsNotValid, detail, { privateDetail, cause });
}
