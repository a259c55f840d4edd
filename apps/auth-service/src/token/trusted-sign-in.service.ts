import { Injectable } from '@nestjs/common';
import type { EnabledApplication } from '../applications/applications.repository';
import { IdentitiesService } from '../identity/identities.service';
import type { TrustedUser } from '../identity/identities.service';
import { authoriseRequest } from './grant-personas';
import { TokenIssuer } from './token-issuer.service';
import type { TokenResponse } from './token.dto';

/** Signs in the user that an authenticated application names. */
@Injectable()
export class TrustedSignIn {
  constructor(
    private readonly identities: IdentitiesService,
    private readonly tokens: TokenIssuer,
  ) {}

  /**
   * Issues tokens for the user.
   * @throws {TokenRejected} AuthenticationFailed or InvalidGrant
   * @throws {TokenRateExceeded} when the user signs in too often
   */
  async issue(
    flow: 'trust' | 'trust-simple',
    application: EnabledApplication,
    user: TrustedUser,
  ): Promise<TokenResponse> {
    authoriseRequest(application, user);
    // The user is read after the application, because `evidenceAt` must not be later than anything that is
    // read.
    const resolution = await this.identities.resolveTrusted(user);
    return this.tokens.issue({
      flow,
      application,
      evidenceAt: application.readAt,
      resolution,
      personas: { kind: 'exactly', personas: user.persona },
    });
  }
}
