import { Body } from '@nestjs/common';
import { Documented } from '@platform/service-defaults';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { ApplicationsService } from '../../applications/applications.service';
import { authoriseFlow } from '../authorise-flow';
import { authorisePersonas } from '../grant-personas';
import { TRUST } from '../flow-docs';
import { TokenFlowController, TokenPost } from '../token-flow.decorator';
import { TokenIssuer } from '../token-issuer.service';
import type { TokenResponse } from '../token-response';
import { plainText, trustedUserFields, utcTimestamp } from '../request-fields';
import { TrustedSubjects } from '../trusted-subjects.service';

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
    private readonly applications: ApplicationsService,
    private readonly subjects: TrustedSubjects,
    private readonly tokens: TokenIssuer,
  ) {}

  @TokenPost('trust')
  @Documented(TRUST)
  async issue(@Body() request: TrustRequestDto): Promise<TokenResponse> {
    const application = await this.applications.authenticateSigned(request);
    authoriseFlow(application, 'trust');
    authorisePersonas(application, request.persona);
    return this.tokens.issue({
      flow: 'trust',
      application,
      isCounted: true,
      resolution: await this.subjects.resolve(request),
      personas: { kind: 'exactly', personas: request.persona },
    });
  }
}
