import { Body } from '@nestjs/common';
import { Documented } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { IdentitiesService } from '../../identity/identities.service';
import { TRUST } from '../flow-docs';
import { authorisePersonas } from '../grant-personas';
import { plainText, trustedUserFields, utcTimestamp } from '../request-fields';
import { TokenApplicationsService } from '../token-applications.service';
import { TokenFlowController, TokenPost } from '../token-flow.decorator';
import { TokenIssuer } from '../token-issuer.service';
import type { TokenResponse } from '../token-response';

export class TrustRequestDto extends createZodDto(
  z.strictObject({
    requestTimestampUtc: utcTimestamp,
    applicationKey: plainText(200),
    authenticationCode: z.string().min(1).max(200),
    ...trustedUserFields,
  }),
) {}

/** Service to service: an application that proves its secret by a signature names a user. */
@TokenFlowController()
export class TrustFlow {
  constructor(
    private readonly applications: TokenApplicationsService,
    private readonly identities: IdentitiesService,
    private readonly tokens: TokenIssuer,
  ) {}

  @TokenPost('trust')
  @Documented(TRUST)
  async issue(@Body() request: TrustRequestDto): Promise<TokenResponse> {
    const application = await this.applications.authenticateSigned(request);
    authorisePersonas(application, request.persona);
    return this.tokens.issue({
      flow: 'trust',
      application,
      resolution: await this.identities.resolveTrusted(request),
      personas: { kind: 'exactly', personas: request.persona },
    });
  }
}
