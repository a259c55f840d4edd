import { Inject, Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { IdentitiesService } from '../identity/identities.service';
import { entitlementOf } from './revocation';
import type { Entitlement, RevocationKey } from './revocation';
import { RevocationsRepository } from './revocations.repository';
import type { IssuedToken } from './revocations.repository';

/** Decides whether a caller may set a revocation, and on which grounds. */
@Injectable()
export class RevocationRights {
  constructor(
    private readonly revocations: RevocationsRepository,
    private readonly identities: IdentitiesService,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
  ) {}

  /**
   * Returns the caller's entitlement to a revocation; null if there is none.
   * @param token the token that `key` names, if it is one of this service
   */
  async find(key: RevocationKey, caller: Caller, token: IssuedToken | null): Promise<Entitlement | null> {
    const policy = this.config.REVOCATION_WRITE_POLICY;
    const byToken = entitlementOf(policy, caller, key, token?.subject === caller.subject);
    if (byToken === 'administrator' || byToken === 'own') return byToken;
    return (await this.isOwner(key, caller, token)) ? 'own' : byToken;
  }

  /**
   * Returns true if the session, token or subject belongs to the caller under any of the caller's subjects.
   * Sessions and tokens from before an account was linked have another subject than the current token.
   */
  private async isOwner(
    { domain, identifier }: RevocationKey,
    caller: Caller,
    token: IssuedToken | null,
  ): Promise<boolean> {
    const owner = domain === 'sub' ? identifier : (token?.subject ?? null);
    if (domain !== 'sid' && owner === null) return false;
    const subjects = await this.identities.subjectsOf(caller);
    if (domain === 'sid') return this.revocations.isSessionOf(identifier, subjects);
    return subjects.some((each) => each === owner);
  }
}
