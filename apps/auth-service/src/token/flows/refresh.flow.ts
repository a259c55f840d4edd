import { Body } from '@nestjs/common';
import { ApiBody, ApiOperation } from '@platform/open-api';
import { createZodDto } from 'nestjs-zod/dto';
import { z } from 'zod';
import { noteInAttempt } from '../../audit/token-attempt';
import type { Resolution } from '../../identity/identity';
import { parseSubject } from '../../identity/identity';
import type { Subject } from '../../identity/identity';
import { IdentitiesService } from '../../identity/identities.service';
import type { RefreshSession } from '../refresh-sessions.repository';
import { RefreshSessionsService } from '../refresh-sessions.service';
import { TokenFlowController, TokenPost } from '../token-flow.decorator';
import { TokenIssuer } from '../token-issuer.service';
import { TokenRejected, TokenRejectionReason } from '../../rejections/token-rejection';
import type { TokenResponse } from '../token.dto';
import { TokenSigner } from '../token-signer.service';

export class RefreshRequestDto extends createZodDto(
  z
    .object({
      refreshToken: z.string().min(1).max(16_384),
      hmacSigning: z.boolean().nullish().meta({ description: 'Absent and null: true.' }),
    })
    // The id keeps "boolean or null", which @nestjs/swagger takes for an array in a schema without one.
    .meta({ id: 'RefreshRequest' }),
) {}

@TokenFlowController()
export class RefreshFlow {
  constructor(
    private readonly signer: TokenSigner,
    private readonly sessions: RefreshSessionsService,
    private readonly identities: IdentitiesService,
    private readonly tokens: TokenIssuer,
  ) {}

  @TokenPost('refresh', { flow: 'refresh' })
  @ApiOperation({
    operationId: 'refreshToken',
    summary: 'Exchange a refresh token for the next pair of tokens',
    description: `A refresh token works once; its successor comes with the response. Send the same token again when no response came: for 30
seconds it gets the same successor. Later it counts as stolen, and every token of that sign-in stops working (reason 6).

The examples hold no token. Tried as they stand they are refused: 401, reason 4.`,
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
  async issue(@Body() { refreshToken, hmacSigning }: RefreshRequestDto): Promise<TokenResponse> {
    const claims = this.signer.readRefreshToken(refreshToken);
    noteInAttempt({ applicationKey: claims.client_id, subject: claims.sub });
    const subject = parseSubject(claims.sub);
    // The token itself names the user, so both look-ups run at once; what they say is judged in order.
    const [session, resolution] = await Promise.all([this.sessions.get(claims.jti), this.resolve(subject)]);
    await this.sessions.admit(session);
    if (resolution === null) {
      throw new TokenRejected(
        TokenRejectionReason.UnsupportedRefreshIdentity,
        'This kind of identity cannot be refreshed.',
      );
    }
    const application = refreshableApplication(session);
    return this.tokens.renew({ application, resolution, session, hmacSigning: hmacSigning ?? true });
  }

  /** The user as the stores know them now; null for a technician without an account, whom no store can find again. */
  private async resolve(subject: Subject | null): Promise<Resolution | null> {
    if (subject === null || subject.kind === 'technician-name') return null;
    return this.identities.resolveSubject(subject);
  }
}

/** The permission may have been withdrawn since the token was issued. */
function refreshableApplication({ application }: RefreshSession): NonNullable<RefreshSession['application']> {
  if (application?.allowRefresh === true && application.allowedFlows.includes('refresh')) return application;
  throw new TokenRejected(
    TokenRejectionReason.InvalidGrant,
    'Refresh tokens are not permitted to this application.',
  );
}
