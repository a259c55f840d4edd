import { Inject, Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { IdentitiesService } from '../identity/identities.service';
import { SessionsRepository } from '../sessions/sessions.repository';
import { entitlementOf } from './revocation';
import type { Entitlement, RevocationKey } from './revocation';
import type { IssuedToken } from './revocations.repository';

/** Decides whether callers may revoke something, and why. */
@Injectable()
export class RevocationRights {
  constructor(
    private readonly sessions: SessionsRepository,
    private readonly identities: IdentitiesService,
    @Inject(AUTH_CONFIG) private readonly config: AuthConfig,
  ) {}

  /** Null: the caller may not. @param token what `key` names, if that is a token of this service */
  async find(key: RevocationKey, caller: Caller, token: IssuedToken | null): Promise<Entitlement | null> {
    const policy = this.config.REVOCATION_WRITE_POLICY;
    const byToken = entitlementOf(policy, caller, key, token?.subject === caller.subject);
    if (byToken === 'administrator' || byToken === 'own') return byToken;
    return (await this.isOwner(key, caller, token)) ? 'own' : byToken;
  }

  /** A session or token from before an account was linked has another subject than the caller's. */
  private async isOwner(
    { domain, identifier }: RevocationKey,
    caller: Caller,
    token: IssuedToken | null,
  ): Promise<boolean> {
    const owner = domain === 'sub' ? identifier : (token?.subject ?? null);
    if (domain !== 'sid' && owner === null) return false;
    const subjects = await this.identities.subjectsOf(caller);
    if (domain === 'sid') return this.sessions.isOf(identifier, subjects);
    return subjects.some((each) => each === owner);
  }
}
