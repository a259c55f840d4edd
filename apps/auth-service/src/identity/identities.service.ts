import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Caller } from '@platform/access-tokens';
import { Persona, hasPersona } from '@platform/personas';
import type { Personas } from '@platform/personas';
import type { DataSource } from 'typeorm';
import { ExternalIdentity } from './external-identity.entity';
import { formatSubject, parseSubject, technicianSubject } from './identity';
import type { Identity, Resolution, Subject } from './identity';
import { CombinedStoresRepository } from './combined-stores.repository';
import type { ExplicitIdentifiers } from './merge-identities';
import { ServiceProvidersRepository } from './single-stores.repository';

export interface TrustedUser {
  persona: Personas;
  userName: string;
  serviceProviderID?: number | null | undefined;
  name?: string | null | undefined;
  userAccountID?: number | null | undefined;
  personID?: number | null | undefined;
}

const ABSENT: Resolution = { outcome: 'absent' };

/** Resolves the user that a token, a trusted application or an identity provider names. */
@Injectable()
export class IdentitiesService {
  constructor(
    private readonly stores: CombinedStoresRepository,
    private readonly serviceProviders: ServiceProvidersRepository,
    @InjectDataSource() private readonly dataSource: DataSource,
  ) {}

  /** Resolves the caller of a verified access token, as the stores know them now. */
  async resolveCaller(caller: Caller): Promise<Resolution> {
    const subject = parseSubject(caller.subject);
    if (subject?.kind === 'technician-name')
      return this.resolveTechnician(subject.providerId, { name: subject.name, userName: null });
    if (subject?.kind === 'technician') return this.resolveSubject(subject);
    if (caller.personId !== null) return this.stores.resolve({ by: 'person', personId: caller.personId });
    if (caller.userId !== null) return this.stores.resolve({ by: 'user', userId: caller.userId });
    return ABSENT;
  }

  /**
   * Returns every subject that tokens of this caller may carry. The subject of new tokens comes first. If the
   * stores do not know the caller, only the token's own subject is returned.
   */
  async subjectsOf(caller: Caller): Promise<[string, ...string[]]> {
    const resolution = await this.resolveCaller(caller);
    if (resolution.outcome !== 'resolved') return [caller.subject];
    const { subject, subjects } = resolution.identity;
    return [subject, ...new Set([...subjects, caller.subject].filter((each) => each !== subject))];
  }

  /** Resolves the user that a subject names, as the stores know them now. */
  async resolveSubject(subject: Exclude<Subject, { kind: 'technician-name' }>): Promise<Resolution> {
    switch (subject.kind) {
      case 'person':
        return this.stores.resolve({ by: 'person', personId: subject.personId });
      case 'user':
        return this.stores.resolve({ by: 'user', userId: subject.userId });
      case 'technician':
        return ofProvider(
          subject.providerId,
          await this.stores.resolve({ by: 'technician', technicianId: subject.technicianId }),
        );
    }
  }

  /**
   * Resolves the user that a trusted application names. A technician named by provider and name needs no
   * account. Anyone else is found by user name, and every other identifier in the request must match that
   * user.
   */
  async resolveTrusted(user: TrustedUser): Promise<Resolution> {
    const { userName } = user;
    const providerId = user.serviceProviderID ?? null;
    const name = user.name ?? null;
    const explicit = { personId: user.personID ?? null, userId: user.userAccountID ?? null };
    if (hasPersona(user.persona, Persona.ServiceProvider) && providerId !== null && name !== null)
      return this.resolveTechnician(providerId, { name, userName }, explicit);
    const resolution = await this.stores.resolve({ by: 'user-name', userName }, explicit);
    return providerId === null ? resolution : ofProvider(providerId, resolution);
  }

  /**
   * Resolves the user signed in by an identity provider. Only a stored mapping counts: an e-mail address or a
   * name proves nothing, because it may change hands.
   */
  async resolveExternal(issuer: string, subject: string): Promise<Resolution> {
    const mapping = await this.dataSource.getRepository(ExternalIdentity).findOneBy({ issuer, subject });
    if (mapping === null) return ABSENT;
    const { personId, userId } = mapping;
    return this.stores.resolve(
      personId === null ? { by: 'user', userId: userId! } : { by: 'person', personId },
    );
  }

  /**
   * Resolves a technician named by the provider's application. The account with the user name is preferred
   * over one with the name: a name that several accounts share is ambiguous. A technician without an account
   * is known by the name alone.
   */
  private async resolveTechnician(
    providerId: number,
    { name, userName }: { name: string; userName: string | null },
    explicit: ExplicitIdentifiers = {},
  ): Promise<Resolution> {
    const accounts = await this.serviceProviders.findAccounts({ providerId, name, userName });
    if (accounts === null) return ABSENT;
    const [technicianId, ...namesakes] = accounts.byUserName ?? accounts.byName ?? [];
    if (namesakes.length > 0) return { outcome: 'ambiguous' };
    if (technicianId !== undefined) return this.stores.resolve({ by: 'technician', technicianId }, explicit);
    const subject = technicianSubject(providerId, name);
    if (subject.kind !== 'technician-name') return ABSENT;
    const identity: Identity = {
      identityType: 'service-provider',
      subject: formatSubject(subject),
      userNameKeys: [],
      subjects: [formatSubject(subject)],
      personId: null,
      userId: null,
      providerId,
      name,
      personas: Persona.ServiceProvider,
      roles: [],
      facilities: [],
      groups: [],
    };
    return { outcome: 'resolved', identity };
  }
}

/** Returns the resolution if the identity belongs to this provider, otherwise `ABSENT`. */
function ofProvider(providerId: number, resolution: Resolution): Resolution {
  if (resolution.outcome !== 'resolved') return resolution;
  return resolution.identity.providerId === providerId ? resolution : ABSENT;
}
