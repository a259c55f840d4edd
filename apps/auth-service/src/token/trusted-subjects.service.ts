import { Injectable } from '@nestjs/common';
import { Persona, hasPersona } from '@platform/personas';
import type { Personas } from '@platform/personas';
import type { Resolution } from '../identity/identity';
import { IdentityResolver } from '../identity/identity-resolver.service';

/** The part of a trust request that names the user. */
export interface TrustedUser {
  persona: Personas;
  userName: string;
  serviceProviderID?: number | null | undefined;
  name?: string | null | undefined;
  userAccountID?: number | null | undefined;
  personID?: number | null | undefined;
}

/** Finds the user that a trusted application names. */
@Injectable()
export class TrustedSubjects {
  constructor(private readonly identities: IdentityResolver) {}

  /** A technician named by provider and name needs no account. Everybody else is found by user name, and whatever other
   *  identifier the request gives has to be theirs. */
  async resolve(user: TrustedUser): Promise<Resolution> {
    const providerId = user.serviceProviderID ?? null;
    const technicianName = user.name ?? null;
    const asServiceProvider = hasPersona(user.persona, Persona.ServiceProvider);
    if (asServiceProvider && providerId !== null && technicianName !== null) {
      const technician = await this.identities.findTechnician(providerId, technicianName);
      return technician === null ? { outcome: 'absent' } : { outcome: 'resolved', identity: technician };
    }
    const resolution = await this.identities.resolve(
      { by: 'user-name', userName: user.userName },
      { personId: user.personID ?? null, userId: user.userAccountID ?? null },
    );
    if (resolution.outcome !== 'resolved' || providerId === null) return resolution;
    return resolution.identity.providerId === providerId ? resolution : { outcome: 'absent' };
  }
}
