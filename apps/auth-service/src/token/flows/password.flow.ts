import { Body, Headers, Inject, Query } from '@nestjs/common';
import { Documented } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { AUTH_CONFIG } from '../../config';
import type { AuthConfig } from '../../config';
import { IdentitiesService } from '../../identity/identities.service';
import { PasswordsService } from '../../identity/passwords/passwords.service';
import { USER } from '../flow-docs';
import { plainText, queryFlag } from '../request-fields';
import { TokenApplicationsService } from '../token-applications.service';
import { TokenFlowController, TokenPost } from '../token-flow.decorator';
import { TokenIssuer } from '../token-issuer.service';
import { TokenRejected, TokenRejectionReason } from '../token-response';
import type { TokenResponse } from '../token-response';

export class PasswordRequestDto extends createZodDto(
  z.strictObject({ user: plainText(256), password: z.string().min(1).max(1_024) }),
) {}

export class PasswordQueryDto extends createZodDto(z.object({ grantAsInternalPartner: queryFlag })) {}

/** User name and password. */
@TokenFlowController()
export class PasswordFlow {
  constructor(
    private readonly passwords: PasswordsService,
    private readonly identities: IdentitiesService,
    private readonly applications: TokenApplicationsService,
    private readonly tokens: TokenIssuer,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
  ) {}

  @TokenPost('user')
  @Documented(USER)
  async issue(
    @Body() { user, password }: PasswordRequestDto,
    @Query() { grantAsInternalPartner }: PasswordQueryDto,
    @Headers('x-application-key') applicationKey: string | undefined,
  ): Promise<TokenResponse> {
    const application = await this.applications.find(
      'password',
      applicationKey ?? this.config.USER_FLOW_DEFAULT_APPLICATION,
    );
    if (!(await this.passwords.isRight(user, password))) {
      throw new TokenRejected(TokenRejectionReason.AuthenticationFailed, 'Authentication failed.');
    }
    return this.tokens.issue({
      flow: 'password',
      application,
      resolution: await this.identities.resolve({ by: 'user-name', userName: user }),
      personas: { kind: 'login', grantAsInternalPartner: grantAsInternalPartner ?? false },
    });
  }
}
