import { pbkdf2Sync, randomBytes } from 'node:crypto';
import { hash as argon2 } from '@node-rs/argon2';
import { userNameKey } from '../identity/identity';
import { ARGON2ID_COST } from '../identity/passwords/password-hash';
import {
  DEVELOPMENT_ACCESS_POINTS,
  DEVELOPMENT_GROUPS,
  DEVELOPMENT_INTERNAL_USERS,
  DEVELOPMENT_PASSWORD,
  DEVELOPMENT_PERSONS,
  DEVELOPMENT_PROVIDERS,
  DEVELOPMENT_TECHNICIANS,
} from './development-identities';

/** One connection to a store's database. */
export interface SqlConnection {
  query(sql: string, parameters?: unknown[]): Promise<unknown>;
}

// A password hash that is there already stays: it may have been upgraded.
const PUT_PERSON = `
  INSERT INTO person_directory.person AS p (person_id, user_name, user_name_key, display_name, personas, disabled, password_hash)
  VALUES ($1, $2, $3, $4, $5, $6, $7)
  ON CONFLICT (person_id) DO UPDATE SET user_name = excluded.user_name, user_name_key = excluded.user_name_key,
    display_name = excluded.display_name, personas = excluded.personas, disabled = excluded.disabled,
    password_hash = coalesce(p.password_hash, excluded.password_hash)`;
const PUT_USER = `
  INSERT INTO internal_legacy.internal_user AS u (user_id, user_name, user_name_key, display_name, password_hash)
  VALUES ($1, $2, $3, $4, $5)
  ON CONFLICT (user_id) DO UPDATE SET user_name = excluded.user_name, user_name_key = excluded.user_name_key,
    display_name = excluded.display_name, disabled = false,
    password_hash = coalesce(u.password_hash, excluded.password_hash)`;

export async function writePersonDirectory(connection: SqlConnection): Promise<void> {
  const passwordHash = await argon2(DEVELOPMENT_PASSWORD, ARGON2ID_COST);
  for (const person of DEVELOPMENT_PERSONS) {
    const { personId, userName, displayName, personas, disabled = false } = person;
    const hash = person.legacyPassword === true ? identityV3Hash(DEVELOPMENT_PASSWORD) : passwordHash;
    await connection.query(PUT_PERSON, [
      personId,
      userName,
      userNameKey(userName),
      displayName,
      personas,
      disabled,
      hash,
    ]);
    await connection.query('DELETE FROM person_directory.person_role WHERE person_id = $1', [personId]);
    await connection.query(
      'INSERT INTO person_directory.person_role (person_id, role) SELECT $1, unnest($2::text[])',
      [personId, person.roles ?? []],
    );
    await connection.query('DELETE FROM person_directory.person_facility WHERE person_id = $1', [personId]);
    await connection.query(
      'INSERT INTO person_directory.person_facility (person_id, facility_id) SELECT $1, unnest($2::integer[])',
      [personId, person.facilities ?? []],
    );
  }
}

export async function writeInternalLegacy(connection: SqlConnection): Promise<void> {
  const passwordHash = await argon2(DEVELOPMENT_PASSWORD, ARGON2ID_COST);
  for (const { userId, userName, displayName, hasPassword } of DEVELOPMENT_INTERNAL_USERS) {
    const hash = hasPassword ? passwordHash : null;
    await connection.query(PUT_USER, [userId, userName, userNameKey(userName), displayName, hash]);
  }
  const groupNames = DEVELOPMENT_GROUPS.map(({ groupName }) => groupName);
  // Members and grants of the development groups go with them.
  await connection.query('DELETE FROM internal_legacy.security_group WHERE group_name = ANY($1)', [
    groupNames,
  ]);
  await connection.query(
    'INSERT INTO internal_legacy.security_group (group_name) SELECT unnest($1::text[])',
    [groupNames],
  );
  for (const { groupName, groups, userIds } of DEVELOPMENT_GROUPS) {
    await connection.query('INSERT INTO internal_legacy.group_member_group SELECT $1, unnest($2::text[])', [
      groupName,
      groups,
    ]);
    await connection.query('INSERT INTO internal_legacy.group_member_user SELECT $1, unnest($2::bigint[])', [
      groupName,
      userIds,
    ]);
  }
  for (const { accessPointName, groups } of DEVELOPMENT_ACCESS_POINTS) {
    await connection.query('INSERT INTO internal_legacy.access_point VALUES ($1) ON CONFLICT DO NOTHING', [
      accessPointName,
    ]);
    await connection.query(
      'INSERT INTO internal_legacy.access_point_grant SELECT $1, unnest($2::text[]) ON CONFLICT DO NOTHING',
      [accessPointName, groups],
    );
  }
}

export async function writeServiceProviders(connection: SqlConnection): Promise<void> {
  for (const { providerId, providerName } of DEVELOPMENT_PROVIDERS) {
    await connection.query(
      `INSERT INTO service_providers.provider (provider_id, provider_name) VALUES ($1, $2)
       ON CONFLICT (provider_id) DO UPDATE SET provider_name = excluded.provider_name, disabled = false`,
      [providerId, providerName],
    );
  }
  for (const { providerId, userName, displayName, personId, facilities } of DEVELOPMENT_TECHNICIANS) {
    const key = userNameKey(userName);
    await connection.query(
      `INSERT INTO service_providers.technician (provider_id, user_name, user_name_key, display_name, person_id)
       VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (user_name_key) DO UPDATE SET provider_id = excluded.provider_id, user_name = excluded.user_name,
         display_name = excluded.display_name, person_id = excluded.person_id, disabled = false`,
      [providerId, userName, key, displayName, personId],
    );
    await connection.query(
      `DELETE FROM service_providers.technician_facility f USING service_providers.technician t
       WHERE f.technician_id = t.technician_id AND t.user_name_key = $1`,
      [key],
    );
    await connection.query(
      `INSERT INTO service_providers.technician_facility (technician_id, facility_id)
       SELECT technician_id, unnest($2::integer[]) FROM service_providers.technician WHERE user_name_key = $1`,
      [key, facilities],
    );
  }
}

/** A hash as ASP.NET Identity V3 writes it: PBKDF2-HMAC-SHA256, 10,000 rounds, 16 bytes of salt, 32 of key. */
function identityV3Hash(password: string): string {
  const salt = randomBytes(16);
  const header = Buffer.alloc(13);
  header.writeUInt8(0x01, 0);
  header.writeUInt32BE(1, 1);
  header.writeUInt32BE(10_000, 5);
  header.writeUInt32BE(salt.length, 9);
  return Buffer.concat([header, salt, pbkdf2Sync(password, salt, 10_000, 32, 'sha256')]).toString('base64');
}
