import { Body } from '@nestjs/common';
import { ApiBody, ApiOperation } from '@platform/open-api';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { TokenApplicationsService } from '../../applications/token-applications.service';
import { plainText, trustedUserFields } from '../token.dto';
import type { TokenResponse } from '../token.dto';
import { TokenFlowController, TokenPost } from '../token-flow.decorator';
import { TrustedSignIn } from '../trusted-sign-in.service';

export class TrustSimpleRequestDto extends createZodDto(
  z.object({
    applicationKey: plainText(200),
    sharedSecret: z.string().min(1).max(1_024),
    ...trustedUserFields,
  }),
) {}

/** Service to service: an application sends its secret and names a user. */
@TokenFlowController()
export class TrustSimpleFlow {
  constructor(
    private readonly applications: TokenApplicationsService,
    private readonly signIn: TrustedSignIn,
  ) {}

  @TokenPost('trust-simple', { flow: 'trust-simple' })
  @ApiOperation({
    operationId: 'signInWithSharedSecret',
    summary: 'Service to service: tokens for a user by the shared secret',
    description: 'For callers that cannot sign. An intercepted request can be replayed, so prefer `trust`.',
  })
  @ApiBody({
    type: TrustSimpleRequestDto,
    examples: {
      user: {
        summary: 'Development application and user',
        value: {
          applicationKey: 'demo-backend',
          sharedSecret: 'demo-backend-secret-for-local-use-only-000001',
          persona: 2,
          userName: 'carl.customer',
        },
      },
    },
  })
  async issue(@Body() request: TrustSimpleRequestDto): Promise<TokenResponse> {
    const { applicationKey, sharedSecret } = request;
    const application = await this.applications.authenticateSecret(
      applicationKey,
      sharedSecret,
      'trust-simple',
    );
    return this.signIn.issue('trust-simple', application, request);
  }
}
