import { Inject, Injectable } from '@nestjs/common';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { IdentitiesService } from '../identity/identities.service';
import { parseSubject } from '../identity/identity';
import type { Identity, Subject } from '../identity/identity';
import type { RevocationKey } from './revocation';

/** The user that a revocation concerns. */
export interface RevokedUser {
  /**
   * True if the user is a service account (`SERVICE_SUBJECTS`). The other services need its tokens to read
   * the revocation list.
   */
  isService: boolean;
  /**
   * The revocation's own key, and the keys of every revocation that covers the user's tokens by issue date.
   */
  names: readonly RevocationKey[];
}

/** Finds the user that a revocation concerns. */
@Injectable()
export class RevokedUsers {
  private readonly services: ReadonlySet<string>;

  constructor(
    private readonly identities: IdentitiesService,
    @Inject(AUTH_CONFIG) config: AuthConfig,
  ) {
    this.services = new Set(config.SERVICE_SUBJECTS);
  }

  /**
   * Finds the user behind a revocation key.
   * @param owner the subject of the token that `key` names, if known
   */
  async find(key: RevocationKey, owner: string | null): Promise<RevokedUser> {
    const unknownUser = { isService: false, names: [key] };
    const subject = subjectOf(key, owner);
    if (subject === null || subject.kind === 'technician-name') return unknownUser;
    const resolution = await this.identities.resolveSubject(subject);
    if (resolution.outcome !== 'resolved') return unknownUser;
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

/** Returns the subject that a key concerns; null for an application or if the subject is unknown. */
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
