import { pbkdf2Sync, randomBytes } from 'node:crypto';
import { hash as argon2 } from '@node-rs/argon2';
import type { DataSource } from 'typeorm';
import { z } from 'zod';
import { applicationSecretPurpose } from '../applications/application';
import { ApplicationsRepository } from '../applications/applications.repository';
import type { Store } from '../identity/identity';
import { ARGON2ID_COST } from '../identity/passwords/password-hash';
import { checkSealingKeys, sealingKeyShape, secretBoxOf } from '../keys/sealing-keys';
import { ownerAddressShape, ownerUrl } from '../migrations/migration-settings';
import { AUTH_SCHEMA, STORE_SCHEMAS, withOwnerConnection } from '../migrations/schemas';
import { TOKEN_FLOWS } from '../rejections/token-rejection';
import { DEVELOPMENT_PASSWORD, developmentApplications } from './development-identities';
import { DevelopmentIdentitiesRepository } from './development-identities.repository';

const APPLICATION_NAME = 'auth-service-development-identities';

/** The settings of the loading program. It connects as the role that owns the tables. */
export const developmentConfigSchema = z
  .object({
    NODE_ENV: z
      .enum(['development', 'test'], 'development identities are never loaded in production')
      .default('development'),
    ...ownerAddressShape,
    DATABASE_URL: ownerAddressShape.DATABASE_URL.unwrap(),
    ...sealingKeyShape,
    DEVELOPMENT_SERVICE_SECRET: z.string().min(16),
    /** The identity provider whose subjects are mapped. Unset: no subject is mapped. */
    OPENID_ISSUER: z.url({ protocol: /^https?$/ }).optional(),
  })
  .superRefine(checkSealingKeys);

type DevelopmentConfig = z.output<typeof developmentConfigSchema>;

/** Loads the development identities and applications. Idempotent. */
export async function loadDevelopmentIdentities(config: DevelopmentConfig): Promise<void> {
  const passwordHash = await argon2(DEVELOPMENT_PASSWORD, ARGON2ID_COST);
  const inStore = (
    store: Store,
    write: (identities: DevelopmentIdentitiesRepository) => Promise<void>,
  ): Promise<void> => {
    const connection = { url: ownerUrl(config, store), applicationName: APPLICATION_NAME };
    return withOwnerConnection(STORE_SCHEMAS[store], connection, (dataSource) =>
      write(new DevelopmentIdentitiesRepository(dataSource)),
    );
  };
  await Promise.all([
    inStore('PERSON_DIRECTORY', (identities) =>
      identities.writePersons(passwordHash, identityV3Hash(DEVELOPMENT_PASSWORD)),
    ),
    inStore('INTERNAL_LEGACY', (identities) => identities.writeInternalUsers(passwordHash)),
    inStore('SERVICE_PROVIDERS', (identities) => identities.writeTechnicians()),
    withOwnerConnection(
      AUTH_SCHEMA,
      { url: ownerUrl(config), applicationName: APPLICATION_NAME },
      (dataSource) => writeOwnTables(dataSource, config),
    ),
  ]);
}

async function writeOwnTables(dataSource: DataSource, config: DevelopmentConfig): Promise<void> {
  const { DEVELOPMENT_SERVICE_SECRET, OPENID_ISSUER: issuer } = config;
  const applications = new ApplicationsRepository(dataSource);
  const secretBox = secretBoxOf(config);
  for (const { sharedSecret, subject, ...application } of developmentApplications(
    DEVELOPMENT_SERVICE_SECRET,
  )) {
    const purpose = applicationSecretPurpose(application.applicationKey);
    const sealed = secretBox.seal(purpose, Buffer.from(sharedSecret));
    const allowedSubjects = subject === undefined ? null : [subject];
    const limits = {
      allowedFlows: TOKEN_FLOWS,
      allowedSubjects,
      allowAdministrators: false,
      confidential: false,
    };
    await applications.replace({ ...application, ...limits }, sealed);
  }
  if (issuer !== undefined)
    await new DevelopmentIdentitiesRepository(dataSource).writeExternalIdentities(issuer);
}

/**
 * Returns a hash as ASP.NET Identity V3 writes it: PBKDF2-HMAC-SHA256, 10,000 iterations, 16-byte salt,
 * 32-byte key.
 */
function identityV3Hash(password: string): string {
  const salt = randomBytes(16);
  const header = Buffer.alloc(13);
  header.writeUInt8(0x01, 0);
  header.writeUInt32BE(1, 1);
  header.writeUInt32BE(10_000, 5);
  header.writeUInt32BE(salt.length, 9);
  return Buffer.concat([header, salt, pbkdf2Sync(password, salt, 10_000, 32, 'sha256')]).toString('base64');
}
