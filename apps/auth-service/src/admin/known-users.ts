import type { IdentityQuery } from '../identity/identity';
import { parseSubject } from '../identity/identity';
import { CombinedStoresRepository } from '../identity/combined-stores.repository';
import type { IdentityStore } from '../identity/combined-stores.repository';
import {
  InternalLegacyRepository,
  PersonDirectoryRepository,
  ServiceProvidersRepository,
} from '../identity/single-stores.repository';
import { SessionsRepository } from '../sessions/sessions.repository';
import type { SessionOwner } from '../sessions/sessions.repository';
import type { CommandContext } from './command';

/** Connects to all identity stores, in the order in which a sign-in consults them. */
export function inAllStores<T>(
  { inStore }: Pick<CommandContext, 'inStore'>,
  work: (stores: readonly IdentityStore[]) => Promise<T>,
): Promise<T> {
  return inStore('PERSON_DIRECTORY', (persons) =>
    inStore('INTERNAL_LEGACY', (users) =>
      inStore('SERVICE_PROVIDERS', (technicians) =>
        work([
          new PersonDirectoryRepository(persons),
          new InternalLegacyRepository(users),
          new ServiceProvidersRepository(technicians),
        ]),
      ),
    ),
  );
}

/** Returns the query for a subject, or null if the stores cannot look it up. */
export function queryOfSubject(text: string): IdentityQuery | null {
  const subject = parseSubject(text);
  switch (subject?.kind) {
    case 'person':
      return { by: 'person', personId: subject.personId };
    case 'user':
      return { by: 'user', userId: subject.userId };
    case 'technician':
      return { by: 'technician', technicianId: subject.technicianId };
    case 'technician-name':
    case undefined:
      return null;
  }
}

/**
 * Whether a store knows the user, or the user has a live session. A user deleted from the stores may still
 * have sessions.
 */
export async function isKnown(context: CommandContext, owner: SessionOwner): Promise<boolean> {
  if (await new SessionsRepository(context.dataSource).hasLive(owner)) return true;
  const query =
    'userId' in owner ? { by: 'user' as const, userId: owner.userId } : queryOfSubject(owner.subject);
  if (query === null) return false;
  return inAllStores(
    context,
    async (stores) => (await new CombinedStoresRepository(stores).find(query)).length > 0,
  );
}
