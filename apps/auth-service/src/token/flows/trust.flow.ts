import { Body } from '@nestjs/common';
import { ApiBody, ApiOperation } from '@platform/open-api';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { TokenApplicationsService } from '../../applications/token-applications.service';
import { giveBackIfRefused } from '../../rate-limits/rate-limit';
import { plainText, trustedUserFields } from '../token.dto';
import type { TokenResponse } from '../token.dto';
import { TokenFlowController, TokenPost } from '../token-flow.decorator';
import { TrustedSignIn } from '../trusted-sign-in.service';

/** An instant in UTC. It stays the text that was sent, because the signature covers that text. */
const utcTimestamp = z.iso
  .datetime({ offset: true })
  .max(40)
  .regex(/(Z|\+00:00)$/, 'must be in UTC');

export class TrustRequestDto extends createZodDto(
  z.object({
    requestTimestampUtc: utcTimestamp,
    applicationKey: plainText(200),
    authenticationCode: z.string().min(1).max(200),
    ...trustedUserFields,
  }),
) {}

/** Requests signed with the secret in the operation's description. */
export const TRUST_EXAMPLES = {
  user: {
    summary: 'For a user',
    value: {
      requestTimestampUtc: '2026-09-24T10:15:30Z',
      applicationKey: 'billing-api',
      authenticationCode: 'ibkPoC6DH/x1sRnAsGzRLZ6g75BZCqjiBwdTdqtHhG4=',
      persona: 1,
      userName: 'jdoe',
    },
  },
  technician: {
    summary: 'For a technician without an account',
    value: {
      requestTimestampUtc: '2026-09-24T10:15:30.123Z',
      applicationKey: 'billing-api',
      authenticationCode: 'z/1wgDYJIFs+qhevH6rV/uJS7zDRHpL2+8zoye6ZBeg=',
      persona: 4,
      userName: 'tech.4711',
      serviceProviderID: 815,
      name: 'Jörg Müller',
      userAccountID: null,
      personID: null,
    },
  },
};

/** Service to service: an application signs a request that names a user. */
@TokenFlowController()
export class TrustFlow {
  constructor(
    private readonly applications: TokenApplicationsService,
    private readonly signIn: TrustedSignIn,
  ) {}

  @TokenPost('trust', { flow: 'trust' })
  @ApiOperation({
    operationId: 'signInWithTrustSignature',
    summary: 'Service to service: tokens for a user by a signed request',
    description: `\`authenticationCode\` is HMAC-SHA256, keyed with the UTF-8 bytes of the shared secret, in padded base64, over nine lines
joined by line feeds: \`TRUST-HMAC-SHA256\`, requestTimestampUtc as sent, applicationKey, persona, userName, serviceProviderID, name,
userAccountID, personID. An absent or null field is an empty line. The timestamp may differ by up to 300 s; a code is accepted once.

The examples are signed with the secret \`kP3v9QmX7cT1wZ5yB8nR2sL6dF4hJ0gA-_uEiOaYtCs\`. They get 401, reason 1. Sign a request of your
own with the current time.`,
  })
  @ApiBody({ type: TrustRequestDto, examples: TRUST_EXAMPLES })
  async issue(@Body() request: TrustRequestDto): Promise<TokenResponse> {
    const application = await this.applications.authenticateSigned(request);
    return giveBackIfRefused(this.signIn.issue('trust', application, request), () =>
      this.applications.giveBackSignature(request),
    );
  }
}
