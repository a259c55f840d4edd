import { Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import type { Application } from '../applications/application';
import { ApplicationsService } from '../applications/applications.service';
import type { Resolution } from '../identity/identity';
import { IdentityResolver } from '../identity/identity-resolver.service';
import { parseSubject } from '../identity/subject';
import { authoriseFlow } from './authorise-flow';
import { TokenRejected, TokenRejectionReason } from './rejection';
import { TokenIssuer } from './token-issuer.service';
import type { TokenResponse } from './token-response';

/** Issues new tokens to the caller of a verified access token. */
@Injectable()
export class BearerExchange {
  constructor(
    private readonly applications: ApplicationsService,
    private readonly identities: IdentityResolver,
    private readonly tokens: TokenIssuer,
  ) {}

  /** @throws {TokenRejected} as `TokenIssuer.issue` does; InvalidGrant when the token's application may not exchange tokens */
  async issueFor(caller: Caller): Promise<TokenResponse> {
    const [application, resolution] = await Promise.all([
      this.getApplication(caller.clientId),
      this.resolve(caller),
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

  private async resolve(caller: Caller): Promise<Resolution> {
    const subject = parseSubject(caller.subject);
    if (subject?.kind === 'technician') {
      const technician = await this.identities.findTechnician(subject.providerId, subject.name);
      return technician === null ? { outcome: 'absent' } : { outcome: 'resolved', identity: technician };
    }
    // A legacy issuer names its subjects differently; the identifier claims say the same.
    if (caller.personId !== null) return this.identities.resolve({ by: 'person', personId: caller.personId });
    if (caller.userId !== null) return this.identities.resolve({ by: 'user', userId: caller.userId });
    return { outcome: 'absent' };
  }
}
