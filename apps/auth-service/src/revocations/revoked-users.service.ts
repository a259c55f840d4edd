import { Inject, Injectable } from '@nestjs/common';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { IdentitiesService } from '../identity/identities.service';
import { parseSubject } from '../identity/identity';
import type { Identity, Subject } from '../identity/identity';
import type { RevocationKey } from './revocation';

/** Whom a revocation is about. */
export interface RevokedUser {
  /**
   * The user stands for a service (`SERVICE_SUBJECTS`). Without its tokens no service can read the
   * revocations.
   */
  isService: boolean;
  /** All that cover the user's tokens by when they were issued; the revocation's own key is one of them. */
  names: readonly RevocationKey[];
}

/** Finds out whom revocations are about. */
@Injectable()
export class RevokedUsers {
  private readonly services: ReadonlySet<string>;

  constructor(
    private readonly identities: IdentitiesService,
    @Inject(AUTH_CONFIG) config: AuthConfig,
  ) {
    this.services = new Set(config.SERVICE_SUBJECTS);
  }

  /** @param owner the subject of the token that `key` names, if that is known */
  async find(key: RevocationKey, owner: string | null): Promise<RevokedUser> {
    const nobodyKnown = { isService: false, names: [key] };
    const subject = subjectOf(key, owner);
    if (subject === null || subject.kind === 'technician-name') return nobodyKnown;
    const resolution = await this.identities.resolveSubject(subject);
    if (resolution.outcome !== 'resolved') return nobodyKnown;
    const { identity } = resolution;
    const isService = identity.userNameKeys.some((userName) => this.services.has(userName));
    return { isService, names: [key, ...namesOf(identity)] };
  }
}

function namesOf({ personId, userId, subjects }: Identity): RevocationKey[] {
  const names: RevocationKey[] = subjects.map((identifier) => ({ domain: 'sub', identifier }));
  if (personId !== null) names.push({ domain: 'svc-personid', identifier: String(personId) });
  if (userId !== null) names.push({ domain: 'internal-legacy', identifier: String(userId) });
  return names;
}

/** Null: nobody, or that is not known. */
function subjectOf({ domain, identifier }: RevocationKey, owner: string | null): Subject | null {
  switch (domain) {
    case 'svc-personid':
      return { kind: 'person', personId: Number(identifier) };
    case 'internal-legacy':
      return { kind: 'user', userId: Number(identifier) };
    case 'sub':
      return parseSubject(identifier);
    case 'jti':
    case 'sid':
      return owner === null ? null : parseSubject(owner);
    case 'client_id':
      return null;
  }
}
