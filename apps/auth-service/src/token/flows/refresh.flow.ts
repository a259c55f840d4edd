import { Body } from '@nestjs/common';
import { ApiBody, ApiOperation } from '@platform/open-api';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { TokenApplicationsService } from '../../applications/token-applications.service';
import { noteInAttempt } from '../../audit/token-attempt';
import { PresentedRefreshTokens, renewalOf } from '../presented-refresh-tokens.service';
import { RefreshSessionsService } from '../refresh-sessions.service';
import { optionalSharedSecret } from '../token.dto';
import type { TokenResponse } from '../token.dto';
import { TokenFlowController, TokenPost } from '../token-flow.decorator';
import { TokenIssuer } from '../token-issuer.service';

export class RefreshRequestDto extends createZodDto(
  z
    .object({
      refreshToken: z.string().min(1).max(16_384),
      hmacSigning: z.boolean().nullish().meta({ description: 'Absent or null means true.' }),
      sharedSecret: optionalSharedSecret,
    })
    // Without an id, @nestjs/swagger would document "boolean or null" as an array.
    .meta({ id: 'RefreshRequest' }),
) {}

@TokenFlowController()
export class RefreshFlow {
  constructor(
    private readonly refreshTokens: PresentedRefreshTokens,
    private readonly sessions: RefreshSessionsService,
    private readonly applications: TokenApplicationsService,
    private readonly tokens: TokenIssuer,
  ) {}

  @TokenPost('refresh', { flow: 'refresh' })
  @ApiOperation({
    operationId: 'refreshToken',
    summary: 'Exchange a refresh token for the next pair of tokens',
    description: `A refresh token works once; the response contains its successor. If no response arrives, send the same token again: within 30
seconds it returns the same successor. After that, reuse counts as theft and every token of that sign-in stops working (reason 6).

The examples hold no valid token. They get 401, reason 4.`,
  })
  @ApiBody({
    type: RefreshRequestDto,
    examples: {
      default: { summary: 'Signed with HMAC', value: { refreshToken: '<REFRESH_TOKEN>' } },
      asymmetric: {
        summary: 'Signed with the asymmetric key',
        value: { refreshToken: '<REFRESH_TOKEN>', hmacSigning: false },
      },
    },
  })
  async issue(
    @Body() { refreshToken, hmacSigning, sharedSecret }: RefreshRequestDto,
  ): Promise<TokenResponse> {
    const claims = this.refreshTokens.read(refreshToken);
    noteInAttempt({ applicationKey: claims.client_id, subject: claims.sub });
    const presented = await this.refreshTokens.find(claims);
    // Checked first, because a reused token must end its session even if the request fails another check.
    await this.sessions.admit(presented.session);
    const renewal = renewalOf(presented);
    await this.applications.assertProofIfNeeded(renewal.application, sharedSecret);
    return this.tokens.renew({ ...renewal, hmacSigning: hmacSigning ?? true });
  }
}
