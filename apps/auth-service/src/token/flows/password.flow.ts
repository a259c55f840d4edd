import { Body, Headers, Inject, Query } from '@nestjs/common';
import { ApiBody, ApiHeader, ApiOperation } from '@platform/open-api';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { TokenApplicationsService } from '../../applications/token-applications.service';
import { AUTH_CONFIG } from '../../config';
import type { AuthConfig } from '../../config';
import { CombinedStoresRepository } from '../../identity/combined-stores.repository';
import { PasswordsService } from '../../identity/passwords/passwords.service';
import { TokenRejected, TokenRejectionReason } from '../../rejections/token-rejection';
import { optionalSharedSecret, plainText } from '../token.dto';
import type { TokenResponse } from '../token.dto';
import { APPLICATION_KEY, TokenFlowController, TokenPost } from '../token-flow.decorator';
import { TokenIssuer } from '../token-issuer.service';

export class PasswordRequestDto extends createZodDto(
  z.object({
    user: plainText(256),
    password: z.string().min(1).max(1_024),
    sharedSecret: optionalSharedSecret,
  }),
) {}

export class PasswordQueryDto extends createZodDto(
  z.object({
    grantAsInternalPartner: z
      .string()
      .regex(/^(true|false)$/i, 'must be true or false')
      .transform((text) => text.toLowerCase() === 'true')
      .optional()
      .meta({
        type: 'boolean',
        pattern: undefined,
        description:
          'Also requests the persona InternalPartner. A user who is not eligible gets tokens without it.',
      }),
  }),
) {}

@TokenFlowController()
export class PasswordFlow {
  constructor(
    private readonly passwords: PasswordsService,
    private readonly stores: CombinedStoresRepository,
    private readonly applications: TokenApplicationsService,
    private readonly tokens: TokenIssuer,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
  ) {}

  @TokenPost('user', { flow: 'password', outage: 'the database, or the capacity for password hashes' })
  @ApiOperation({
    operationId: 'signInWithPassword',
    summary: 'Sign in with user name and password',
    description: `An unknown user, a wrong password and a locked account get the same response. Five failures lock an account for one minute;
each further lock lasts longer.`,
  })
  @ApiBody({
    type: PasswordRequestDto,
    examples: {
      ivy: { summary: 'A development user', value: { user: 'ivy.internal', password: 'Demo-Passw0rd!' } },
    },
  })
  @ApiHeader(APPLICATION_KEY)
  async issue(
    @Body() { user, password, sharedSecret }: PasswordRequestDto,
    @Query() { grantAsInternalPartner }: PasswordQueryDto,
    @Headers('x-application-key') namedKey: string | undefined,
  ): Promise<TokenResponse> {
    const applicationKey = namedKey ?? this.config.USER_FLOW_DEFAULT_APPLICATION;
    const proven = await this.applications.authenticateIfSecretSent('password', {
      applicationKey,
      sharedSecret,
    });
    // The application is read before the password is checked, so that a revocation set during the check is
    // dated after `readAt`.
    const read =
      proven === null
        ? await this.applications.read(applicationKey)
        : { application: proven, readAt: proven.readAt };
    await this.assertRight(user, password);
    // The application is judged after the password, so that a caller who knows neither password nor secret
    // learns nothing about applications.
    const evidenceAt = proven === null ? this.applications.permitUnproven('password', read) : proven.readAt;
    return this.tokens.issue({
      flow: 'password',
      application: read.application,
      evidenceAt,
      resolution: await this.stores.resolve({ by: 'user-name', userName: user }),
      personas: { kind: 'login', grantAsInternalPartner: grantAsInternalPartner ?? false },
    });
  }

  /** Checks the password. @throws {TokenRejected} AuthenticationFailed */
  private async assertRight(user: string, password: string): Promise<void> {
    const verdict = await this.passwords.check(user, password);
    if (verdict.isRight) return;
    const reason = TokenRejectionReason.AuthenticationFailed;
    throw new TokenRejected(reason, 'Authentication failed.', { privateDetail: verdict.because });
  }
}
