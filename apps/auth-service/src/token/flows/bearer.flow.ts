import { Body, Headers, Inject, Query } from '@nestjs/common';
import { AccessTokenError, AccessTokenVerifier, accessProblem, bearerToken } from '@platform/access-tokens';
import type { Caller } from '@platform/access-tokens';
import { ApiBody, ApiOperation, ApiSecurity } from '@platform/open-api';
import { CLOCK } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import type { Application } from '../../applications/application';
import { TokenApplicationsService } from '../../applications/token-applications.service';
import { noteInAttempt } from '../../audit/token-attempt';
import { AUTH_CONFIG } from '../../config';
import type { AuthConfig } from '../../config';
import { IdentitiesService } from '../../identity/identities.service';
import { TokenRejected, TokenRejectionReason } from '../../rejections/token-rejection';
import { optionalSharedSecret } from '../token.dto';
import type { TokenResponse } from '../token.dto';
import { TokenFlowController, TokenPost } from '../token-flow.decorator';
import { TokenIssuer } from '../token-issuer.service';

export class BearerQueryDto extends createZodDto(
  z.object({
    bearerTokenOverride: z.string().max(16_384).optional().meta({
      description:
        'Replaces the Authorization header. For test environments; ignored unless the service enables it.',
    }),
  }),
) {}

/**
 * Returns true for a JSON object. A zod schema would copy all of its members, of which there may be
 * thousands.
 */
function isJsonObject(body: unknown): boolean {
  return typeof body === 'object' && body !== null && !Array.isArray(body);
}

/** The optional body. Release 1.0.0 read no body, so a body that is not an object is ignored. */
export class BearerRequestDto extends createZodDto(
  z.preprocess(
    (body) => (isJsonObject(body) ? body : {}),
    z.object({ sharedSecret: optionalSharedSecret }).meta({ type: undefined }),
  ),
) {}

export class TrustedTokenDto extends createZodDto(
  z.object({ token: z.string().max(16_384).nullish(), sharedSecret: optionalSharedSecret }).default({}),
) {}

const BODY_EXAMPLES = {
  unproven: { summary: 'An application that is not confidential', value: {} },
  proven: {
    summary: 'A confidential application',
    value: { sharedSecret: 'demo-backend-secret-for-local-use-only-000001' },
  },
};

/** Exchanges a valid access token for a new one. */
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
    summary: 'Exchange a valid access token for a new one',
    description:
      'The new token has the same user and `auth_time`, and no persona that the old one lacks. A sign-in older than 365 days is refused.',
  })
  @ApiSecurity({})
  @ApiSecurity('accessToken')
  @ApiBody({ type: BearerRequestDto, required: false, examples: BODY_EXAMPLES })
  issue(
    @Headers('authorization') authorization: string | undefined,
    @Query() query: BearerQueryDto,
    @Body() { sharedSecret }: BearerRequestDto,
  ): Promise<TokenResponse> {
    return this.exchange(authorization, query, sharedSecret);
  }

  private async exchange(
    authorization: string | undefined,
    { bearerTokenOverride }: BearerQueryDto,
    sharedSecret: string | null | undefined,
  ): Promise<TokenResponse> {
    const override = this.config.BEARER_TOKEN_OVERRIDE_ENABLED ? bearerTokenOverride : undefined;
    const caller = await this.verify(override ?? bearerToken(authorization));
    noteInAttempt({ applicationKey: caller.clientId, subject: caller.subject });
    // Repeated exchanges must not extend a sign-in beyond its maximum age.
    const ageMs = this.clock.now().getTime() - caller.authTime.getTime();
    if (ageMs > this.config.BEARER_MAX_AGE * 1_000) throw notValid('the sign-in is too long ago');
    const [application, resolution] = await Promise.all([
      this.applicationOf(caller, sharedSecret),
      this.identities.resolveCaller(caller),
    ]);
    return this.tokens.renew({ application, resolution, accessTokenOf: caller });
  }

  /** Obsolete alias of `bearer` that also accepts the token in the body. */
  @TokenPost('trustedToken', { flow: 'bearer', successor: '/auth/token/bearer' })
  @ApiOperation({
    operationId: 'exchangeTrustedToken',
    summary: 'Alias of bearer',
    description:
      'Also accepts the token in the body. The example holds no valid token; without an Authorization header it gets 401, reason 2.',
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
    return this.exchange(authorization ?? fromBody, query, body.sharedSecret);
  }

  private async applicationOf(
    { clientId: applicationKey }: Caller,
    sharedSecret: string | null | undefined,
  ): Promise<Application | null> {
    const proven = await this.applications.authenticateIfSecretSent('bearer', {
      applicationKey,
      sharedSecret,
    });
    return proven ?? this.applications.findUnproven('bearer', applicationKey);
  }

  private async verify(token: string | null): Promise<Caller> {
    if (token === null) throw notValid('no readable token');
    try {
      return await this.verifier.verify(token);
    } catch (error) {
      // Unavailable keys or revocations are an outage (503). They say nothing about the token.
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
