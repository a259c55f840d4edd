import { Body } from '@nestjs/common';
import { ApiBody, ApiOperation } from '@platform/open-api';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { TokenApplicationsService } from '../../applications/token-applications.service';
import { IdentitiesService } from '../../identity/identities.service';
import { codeVerifier } from '../../openid/application-return';
import { SignOnCodesRepository } from '../../openid/sign-on-codes.repository';
import { giveBackIfRefused } from '../../rate-limits/rate-limit';
import { TokenRejected, TokenRejectionReason } from '../../rejections/token-rejection';
import { optionalSharedSecret, plainText } from '../token.dto';
import type { TokenResponse } from '../token.dto';
import { TokenFlowController, TokenPost } from '../token-flow.decorator';
import { TokenIssuer } from '../token-issuer.service';

export class CodeRequestDto extends createZodDto(
  z.object({
    applicationKey: plainText(200),
    code: z
      .string()
      .min(1)
      .max(200)
      .meta({ description: 'The `code` parameter of the return URL. Valid once, for 60 s.' }),
    codeVerifier: codeVerifier.meta({
      description: 'The PKCE verifier of the S256 challenge that started the sign-in.',
    }),
    sharedSecret: optionalSharedSecret,
  }),
) {}

/** Exchanges the code of a single sign-on that returned to an application for tokens. */
@TokenFlowController()
export class CodeFlow {
  constructor(
    private readonly applications: TokenApplicationsService,
    private readonly codes: SignOnCodesRepository,
    private readonly identities: IdentitiesService,
    private readonly tokens: TokenIssuer,
  ) {}

  @TokenPost('code', { flow: 'code' })
  @ApiOperation({
    operationId: 'exchangeSignOnCode',
    summary: 'Exchange the code of a single sign-on',
    description:
      'For a sign-in that started with `returnUrl`. The code is valid once, for 60 seconds, and only with the verifier of its challenge. ' +
      'The code of the example does not exist: it gets 401, reason 1.',
  })
  @ApiBody({
    type: CodeRequestDto,
    examples: {
      code: {
        summary: 'An application that does not send its secret',
        value: {
          applicationKey: 'demo-backend',
          code: 'b0xQ…',
          codeVerifier: 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk',
        },
      },
    },
  })
  async issue(@Body() request: CodeRequestDto): Promise<TokenResponse> {
    const { applicationKey, sharedSecret } = request;
    const proven = await this.applications.authenticateIfSecretSent('code', { applicationKey, sharedSecret });
    const signedIn = await this.codes.take(request);
    if (signedIn === null) throw noSuchCode();
    // Checked after the code, so that a caller without a valid code learns nothing about applications.
    const application = proven ?? (await this.applications.findUnproven('code', applicationKey));
    const issue = this.tokens.issue({
      flow: 'code',
      application,
      evidenceAt: signedIn.evidenceAt,
      isCredential: true,
      resolution: await this.identities.resolveExternal(signedIn.issuer, signedIn.subject),
      personas: { kind: 'login', grantAsInternalPartner: false },
      authTime: signedIn.authTime,
    });
    return giveBackIfRefused(issue, () => this.codes.giveBack(request, signedIn));
  }
}

/** The same response for every cause, so that it does not reveal which codes exist. */
function noSuchCode(): TokenRejected {
  const privateDetail = 'code unknown, expired, used, of another application or for another verifier';
  const detail = 'This code is not valid. Start again.';
  return new TokenRejected(TokenRejectionReason.AuthenticationFailed, detail, { privateDetail });
}
