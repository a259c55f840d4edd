import { inTransaction } from '@platform/database';
import { In, IsNull } from 'typeorm';
import type { DataSource, EntityManager } from 'typeorm';
import { ExternalIdentity } from '../identity/external-identity.entity';
import { userNameKey } from '../identity/identity';
import {
  AccessPoint,
  AccessPointGrant,
  GroupMemberGroup,
  GroupMemberUser,
  InternalUser,
  Person,
  PersonFacility,
  PersonRole,
  Provider,
  SecurityGroup,
  Technician,
  TechnicianFacility,
} from '../identity/identity-stores.entity';
import {
  DEVELOPMENT_ACCESS_POINTS,
  DEVELOPMENT_EXTERNAL_IDENTITIES,
  DEVELOPMENT_GROUPS,
  DEVELOPMENT_INTERNAL_USERS,
  DEVELOPMENT_PERSONS,
  DEVELOPMENT_PROVIDERS,
  DEVELOPMENT_TECHNICIANS,
} from './development-identities';

/**
 * Writes the development identities. Needs the role that owns the tables. Each method is one idempotent
 * transaction.
 */
export class DevelopmentIdentitiesRepository {
  constructor(private readonly dataSource: DataSource) {}

  writePersons(passwordHash: string, legacyPasswordHash: string): Promise<void> {
    return this.write(async (manager) => {
      const persons = DEVELOPMENT_PERSONS.map(({ personId, userName, displayName, personas, disabled }) => ({
        personId,
        userName,
        userNameKey: userNameKey(userName),
        displayName,
        personas,
        disabled: disabled ?? false,
      }));
      await manager.upsert(Person, persons, ['personId']);
      for (const { personId, legacyPassword } of DEVELOPMENT_PERSONS) {
        const hash = legacyPassword === true ? legacyPasswordHash : passwordHash;
        // An existing hash is kept: a login may have upgraded it.
        await manager.update(Person, { personId, passwordHash: IsNull() }, { passwordHash: hash });
      }
      const personId = In(persons.map((person) => person.personId));
      await manager.delete(PersonRole, { personId });
      await manager.delete(PersonFacility, { personId });
      await manager.insert(
        PersonRole,
        DEVELOPMENT_PERSONS.flatMap(({ personId, roles = [] }) => roles.map((role) => ({ personId, role }))),
      );
      await manager.insert(
        PersonFacility,
        DEVELOPMENT_PERSONS.flatMap(({ personId, facilities = [] }) =>
          facilities.map((facilityId) => ({ personId, facilityId })),
        ),
      );
    });
  }

  writeInternalUsers(passwordHash: string): Promise<void> {
    return this.write(async (manager) => {
      for (const { hasPassword, ...user } of DEVELOPMENT_INTERNAL_USERS) {
        const { userId, userName } = user;
        const row = { ...user, userNameKey: userNameKey(userName), disabled: false };
        // Matched by name: an installation may have created svc.platform with a different number.
        await manager.upsert(InternalUser, row, ['userNameKey']);
        if (hasPassword)
          await manager.update(InternalUser, { userId, passwordHash: IsNull() }, { passwordHash });
      }
      await writeGroups(manager);
    });
  }

  writeTechnicians(): Promise<void> {
    return this.write(async (manager) => {
      const providers = DEVELOPMENT_PROVIDERS.map((provider) => ({ ...provider, disabled: false }));
      await manager.upsert(Provider, providers, ['providerId']);
      for (const { facilities, ...technician } of DEVELOPMENT_TECHNICIANS) {
        const key = userNameKey(technician.userName);
        const row = { ...technician, userNameKey: key, disabled: false };
        await manager.upsert(Technician, row, ['userNameKey']);
        const { technicianId } = await manager.findOneByOrFail(Technician, { userNameKey: key });
        await manager.delete(TechnicianFacility, { technicianId });
        await manager.insert(
          TechnicianFacility,
          facilities.map((facilityId) => ({ technicianId, facilityId })),
        );
      }
    });
  }

  /** @param issuer the provider of the mapped subjects */
  writeExternalIdentities(issuer: string): Promise<void> {
    return this.write(async (manager) => {
      const identities = DEVELOPMENT_EXTERNAL_IDENTITIES.map((identity) => ({ issuer, ...identity }));
      await manager.upsert(ExternalIdentity, identities, ['issuer', 'subject']);
    });
  }

  private write(work: (manager: EntityManager) => Promise<void>): Promise<void> {
    return inTransaction(this.dataSource, 'READ COMMITTED', work);
  }
}

async function writeGroups(manager: EntityManager): Promise<void> {
  const groupNames = DEVELOPMENT_GROUPS.map(({ groupName }) => groupName);
  // Deleting the groups cascades to their members and grants.
  await manager.delete(SecurityGroup, { groupName: In(groupNames) });
  await manager.insert(
    SecurityGroup,
    groupNames.map((groupName) => ({ groupName })),
  );
  await manager.insert(
    GroupMemberGroup,
    DEVELOPMENT_GROUPS.flatMap(({ groupName, groups: members }) =>
      members.map((memberGroupName) => ({ groupName, memberGroupName })),
    ),
  );
  await manager.insert(
    GroupMemberUser,
    DEVELOPMENT_GROUPS.flatMap(({ groupName, userIds }) => userIds.map((userId) => ({ groupName, userId }))),
  );
  for (const { accessPointName, groups: granted } of DEVELOPMENT_ACCESS_POINTS) {
    const accessPoint = manager.createQueryBuilder().insert().into(AccessPoint).values({ accessPointName });
    await accessPoint.orIgnore().execute();
    await manager.insert(
      AccessPointGrant,
      granted.map((groupName) => ({ accessPointName, groupName })),
    );
  }
}
