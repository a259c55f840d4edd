import { Body } from '@nestjs/common';
import { Documented } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { IdentitiesService } from '../../identity/identities.service';
import { TRUST_SIMPLE } from '../flow-docs';
import { authorisePersonas } from '../grant-personas';
import { plainText, trustedUserFields } from '../request-fields';
import { TokenApplicationsService } from '../token-applications.service';
import { TokenFlowController, TokenPost } from '../token-flow.decorator';
import { TokenIssuer } from '../token-issuer.service';
import type { TokenResponse } from '../token-response';

export class TrustSimpleRequestDto extends createZodDto(
  z.strictObject({
    applicationKey: plainText(200),
    sharedSecret: z.string().min(1).max(1_024),
    ...trustedUserFields,
  }),
) {}

/** Service to service: an application that sends its secret names a user. */
@TokenFlowController()
export class TrustSimpleFlow {
  constructor(
    private readonly applications: TokenApplicationsService,
    private readonly identities: IdentitiesService,
    private readonly tokens: TokenIssuer,
  ) {}

  @TokenPost('trust-simple')
  @Documented(TRUST_SIMPLE)
  async issue(@Body() request: TrustSimpleRequestDto): Promise<TokenResponse> {
    const application = await this.applications.authenticateSecret(
      request.applicationKey,
      request.sharedSecret,
    );
    authorisePersonas(application, request.persona);
    return this.tokens.issue({
      flow: 'trust-simple',
      application,
      resolution: await this.identities.resolveTrusted(request),
      personas: { kind: 'exactly', personas: request.persona },
    });
  }
}
