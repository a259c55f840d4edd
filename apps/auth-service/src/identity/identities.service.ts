import { Injectable } from '@nestjs/common';
import { InjectDataSource } from '@nestjs/typeorm';
import type { Caller } from '@platform/access-tokens';
import { Persona, hasPersona } from '@platform/personas';
import type { Personas } from '@platform/personas';
import type { DataSource } from 'typeorm';
import { ExternalIdentity } from './external-identity.entity';
import { parseSubject } from './identity';
import type { Identity, IdentityQuery, IdentityRecord, IdentityStoreName, Resolution } from './identity';
import { IdentityStoresRepository } from './identity-stores.repository';
import { mergeIdentities, technicianName } from './merge-identities';
import type { ExplicitIdentifiers } from './merge-identities';
import { ServiceProvidersRepository } from './single-stores.repository';

/** The part of a trust request that names the user. */
export interface TrustedUser {
  persona: Personas;
  userName: string;
  serviceProviderID?: number | null | undefined;
  name?: string | null | undefined;
  userAccountID?: number | null | undefined;
  personID?: number | null | undefined;
}

const ABSENT: Resolution = { outcome: 'absent' };

/** Finds out who a user is by asking all stores. An outage of any store throws: half an identity is never issued. */
@Injectable()
export class IdentitiesService {
  constructor(
    private readonly stores: IdentityStoresRepository,
    private readonly serviceProviders: ServiceProvidersRepository,
    @InjectDataSource() private readonly dataSource: DataSource,
  ) {}

  async resolve(query: IdentityQuery, explicit: ExplicitIdentifiers = {}): Promise<Resolution> {
    const found = await this.stores.find(query);
    const linked = await this.followLinks(found);
    return mergeIdentities(this.stores.inOrder([...found, ...linked]), explicit);
  }

  /** The caller of a verified access token, as the stores know them now. */
  async resolveCaller(caller: Caller): Promise<Resolution> {
    const subject = parseSubject(caller.subject);
    if (subject?.kind === 'technician') return this.resolveTechnician(subject.providerId, subject.name);
    // A legacy issuer names its subjects differently; the identifier claims say the same.
    if (caller.personId !== null) return this.resolve({ by: 'person', personId: caller.personId });
    if (caller.userId !== null) return this.resolve({ by: 'user', userId: caller.userId });
    return ABSENT;
  }

  /** The user that a trusted application names. A technician named by provider and name needs no account. Everybody else is found by
   *  user name, and whatever other identifier the request gives has to be theirs. */
  async resolveTrusted(user: TrustedUser): Promise<Resolution> {
    const providerId = user.serviceProviderID ?? null;
    const technician = user.name ?? null;
    if (hasPersona(user.persona, Persona.ServiceProvider) && providerId !== null && technician !== null)
      return this.resolveTechnician(providerId, technician);
    const resolution = await this.resolve(
      { by: 'user-name', userName: user.userName },
      { personId: user.personID ?? null, userId: user.userAccountID ?? null },
    );
    if (resolution.outcome !== 'resolved' || providerId === null) return resolution;
    return resolution.identity.providerId === providerId ? resolution : ABSENT;
  }

  /** The user whom an identity provider has signed in. Only a mapping that somebody has made counts. An e-mail address or a name proves
   *  nothing: its owner may change. */
  async resolveExternal(issuer: string, subject: string): Promise<Resolution> {
    const mapping = await this.dataSource.getRepository(ExternalIdentity).findOneBy({ issuer, subject });
    if (mapping === null) return ABSENT;
    const { personId, userId } = mapping;
    return this.resolve(personId === null ? { by: 'user', userId: userId! } : { by: 'person', personId });
  }

  /** A technician known only by provider and name; absent when there is no such provider. */
  private async resolveTechnician(providerId: number, name: string): Promise<Resolution> {
    if (!(await this.serviceProviders.hasProvider(providerId))) return ABSENT;
    const identity: Identity = {
      ...technicianName(providerId, name),
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

  /** Asks the stores that a link points to and that did not know the user by the first query. Most users have no such link and cost no
   *  second round trip. */
  private async followLinks(found: readonly IdentityRecord[]): Promise<IdentityRecord[]> {
    const personId = found.find((record) => record.personId !== null)?.personId ?? null;
    const userId = found.find((record) => record.userId !== null)?.userId ?? null;
    const linked = await Promise.all([
      personId === null ? [] : this.followLink(found, 'person-directory', { by: 'person', personId }),
      userId === null ? [] : this.followLink(found, 'internal-legacy', { by: 'user', userId }),
    ]);
    return linked.flat();
  }

  private async followLink(
    found: readonly IdentityRecord[],
    storeName: IdentityStoreName,
    query: IdentityQuery,
  ): Promise<IdentityRecord[]> {
    return found.some(({ store }) => store === storeName) ? [] : this.stores.findIn(storeName, query);
  }
}
