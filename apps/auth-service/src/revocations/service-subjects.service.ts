import { Inject, Injectable } from '@nestjs/common';
import { AUTH_CONFIG } from '../config';
import type { AuthConfig } from '../config';
import { IdentitiesService } from '../identity/identities.service';
import { parseSubject } from '../identity/identity';
import type { Subject } from '../identity/identity';
import type { RevocationKey } from './revocation';

/** The users that stand for services (`SERVICE_SUBJECTS`). Without their tokens no service can read the revocations. */
@Injectable()
export class ServiceSubjects {
  private readonly names: ReadonlySet<string>;

  constructor(
    private readonly identities: IdentitiesService,
    @Inject(AUTH_CONFIG) config: AuthConfig,
  ) {
    this.names = new Set(config.SERVICE_SUBJECTS);
  }

  /** True when a revocation would be about a service. @param owner the subject of the token that it names, if that is known */
  async include(key: RevocationKey, owner: string | null): Promise<boolean> {
    const subject = subjectOf(key, owner);
    if (subject === null || subject.kind === 'technician-name') return false;
    const resolution = await this.identities.resolveSubject(subject);
    return (
      resolution.outcome === 'resolved' &&
      resolution.identity.userNameKeys.some((userName) => this.names.has(userName))
    );
  }
}

/** Whom a revocation is about; null: nobody, or that is not known. */
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
