import { Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import type { Application } from '../applications/application';
import { ApplicationsService } from '../applications/applications.service';
import { CallerIdentities } from '../identity/caller-identities.service';
import { authoriseFlow } from './authorise-flow';
import { TokenRejected, TokenRejectionReason } from '../token-endpoints/rejection';
import { TokenIssuer } from './token-issuer.service';
import type { TokenResponse } from './token-response';

/** Issues new tokens to the caller of a verified access token. */
@Injectable()
export class BearerExchange {
  constructor(
    private readonly applications: ApplicationsService,
    private readonly callers: CallerIdentities,
    private readonly tokens: TokenIssuer,
  ) {}

  /** @throws {TokenRejected} as `TokenIssuer.issue` does; InvalidGrant when the token's application may not exchange tokens */
  async issueFor(caller: Caller): Promise<TokenResponse> {
    const [application, resolution] = await Promise.all([
      this.getApplication(caller.clientId),
      this.callers.resolve(caller),
    ]);
    return this.tokens.issue({
      flow: 'bearer',
      application,
      resolution,
      personas: { kind: 'within', personas: caller.personas },
      authTime: caller.authTime,
      presented: { tokenId: caller.tokenId, issuedAt: caller.issuedAt },
    });
  }

  private async getApplication(clientId: string | null): Promise<Application | null> {
    if (clientId === null) return null;
    const application = await this.applications.find(clientId);
    if (application === null) {
      throw new TokenRejected(TokenRejectionReason.InvalidGrant, 'This application may not exchange tokens.');
    }
    authoriseFlow(application, 'bearer');
    return application;
  }
}
