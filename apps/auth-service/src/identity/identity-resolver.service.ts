import { Injectable } from '@nestjs/common';
import { Persona } from '@platform/personas';
import type { Identity, IdentityQuery, IdentityRecord, IdentityStoreName, Resolution } from './identity';
import { IdentityDirectory } from './identity-directory.service';
import type { ExplicitIdentifiers } from './merge-identities';
import { mergeIdentities, technicianName } from './merge-identities';
import { ServiceProvidersStore } from './service-providers.store';

/** Finds out who a user is by asking all stores. An outage of any store throws: half an identity is never issued. */
@Injectable()
export class IdentityResolver {
  constructor(
    private readonly directory: IdentityDirectory,
    private readonly serviceProviders: ServiceProvidersStore,
  ) {}

  async resolve(query: IdentityQuery, explicit: ExplicitIdentifiers = {}): Promise<Resolution> {
    const found = await this.directory.find(query);
    const linked = await this.followLinks(found);
    return mergeIdentities(this.directory.inOrder([...found, ...linked]), explicit);
  }

  /** A technician known only by provider and name; null when there is no such provider. */
  async findTechnician(providerId: number, name: string): Promise<Identity | null> {
    if (!(await this.serviceProviders.hasProvider(providerId))) return null;
    return {
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
  }

  /** Asks the stores that a link points to and that did not know the user by the first query. Most users have no such
   *  link and cost no second round. */
  private async followLinks(found: readonly IdentityRecord[]): Promise<IdentityRecord[]> {
    const personId = found.find((record) => record.personId !== null)?.personId ?? null;
    const userId = found.find((record) => record.userId !== null)?.userId ?? null;
    const links: [IdentityStoreName, IdentityQuery | null][] = [
      ['person-directory', personId === null ? null : { by: 'person', personId }],
      ['internal-legacy', userId === null ? null : { by: 'user', userId }],
    ];
    const answers = await Promise.all(links.map((link) => this.followLink(link, found)));
    return answers.flat();
  }

  private async followLink(
    [storeName, query]: [IdentityStoreName, IdentityQuery | null],
    found: readonly IdentityRecord[],
  ): Promise<IdentityRecord[]> {
    if (query === null || found.some((record) => record.store === storeName)) return [];
    return this.directory.findIn(storeName, query);
  }
}
