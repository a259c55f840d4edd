import { Injectable } from '@nestjs/common';
import type { Caller } from '@platform/access-tokens';
import type { Resolution } from './identity';
import { IdentityResolver } from './identity-resolver.service';
import { parseSubject } from './subject';

/** Finds out who the caller of a verified access token is now. */
@Injectable()
export class CallerIdentities {
  constructor(private readonly identities: IdentityResolver) {}

  async resolve(caller: Caller): Promise<Resolution> {
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
