import { CommandError } from '@platform/service-defaults';
import { Persona } from '@platform/personas';
import type { DataSource } from 'typeorm';
import { z } from 'zod';
import { rotateSecret } from '../admin/application-secrets';
import { applicationSecretPurpose, isProven } from '../applications/application';
import { ApplicationsRepository } from '../applications/applications.repository';
import { userNameKey } from '../identity/identity';
import { InternalUser } from '../identity/identity-stores.entity';
import { checkSealingKeys, sealingKeyShape, secretBoxOf } from '../keys/sealing-keys';
import { ownerAddressShape, ownerUrl } from '../migrations/migration-settings';
import { AUTH_SCHEMA, STORE_SCHEMAS, withOwnerConnection } from '../migrations/schemas';

const applicationName = 'auth-service-install';
const DISPLAY_NAME = 'Platform services';

/**
 * The settings of the installation program. The identity is the one that the other services are configured
 * with. The program connects as the role that owns the tables.
 */
export const installationConfigSchema = z
  .object({
    ...ownerAddressShape,
    DATABASE_URL: ownerAddressShape.DATABASE_URL.unwrap(),
    ...sealingKeyShape,
    SERVICE_APPLICATION_KEY: z.string().min(1).default('platform-services'),
    SERVICE_USER_NAME: z.string().min(1).default('svc.platform'),
    SERVICE_SHARED_SECRET: z.string().min(32),
  })
  .superRefine(checkSealingKeys);

type InstallationConfig = z.output<typeof installationConfigSchema>;

/**
 * Creates the identity with which the other services read revocations: an internal user, and an application
 * with their shared secret. Idempotent. A different secret is added, and the previous one stays valid.
 * @returns the log lines of the installation
 * @throws {CommandError} if the user or the application is disabled
 */
export async function installPlatformServices(config: InstallationConfig): Promise<string[]> {
  const store = { url: ownerUrl(config, 'INTERNAL_LEGACY'), applicationName };
  return [
    await withOwnerConnection(STORE_SCHEMAS.INTERNAL_LEGACY, store, (dataSource) =>
      ensureUser(dataSource, config),
    ),
    await withOwnerConnection(AUTH_SCHEMA, { url: ownerUrl(config), applicationName }, (dataSource) =>
      ensureApplication(dataSource, config),
    ),
  ];
}

async function ensureUser(
  dataSource: DataSource,
  { SERVICE_USER_NAME: name }: InstallationConfig,
): Promise<string> {
  const key = userNameKey(name);
  // Hand-written SQL: the store has no sequence, and of two concurrent programs exactly one must succeed.
  const made: unknown[] = await dataSource.query(
    `INSERT INTO internal_legacy.internal_user (user_id, user_name, user_name_key, display_name)
     SELECT coalesce(max(user_id), 0) + 1, $1, $2, $3 FROM internal_legacy.internal_user
     HAVING NOT coalesce(bool_or(user_name_key = $2), false)
     ON CONFLICT DO NOTHING RETURNING user_id`,
    [name, key, DISPLAY_NAME],
  );
  const user = await dataSource.getRepository(InternalUser).findOneBy({ userNameKey: key });
  if (user === null) throw new CommandError(`another program took the number of user ${name}: try again`);
  if (user.disabled) throw new CommandError(`user ${name} is disabled`);
  return `user ${name}: ${made.length === 0 ? 'there already' : 'made'}`;
}

async function ensureApplication(dataSource: DataSource, config: InstallationConfig): Promise<string> {
  const { SERVICE_APPLICATION_KEY: applicationKey, SERVICE_SHARED_SECRET, SERVICE_USER_NAME } = config;
  const applications = new ApplicationsRepository(dataSource);
  const [box, purpose] = [secretBoxOf(config), applicationSecretPurpose(applicationKey)];
  const secret = Buffer.from(SERVICE_SHARED_SECRET);
  const sealed = box.seal(purpose, secret);
  const application = {
    applicationKey,
    allowedPersonas: Persona.InternalPartner,
    allowedFlows: ['trust'],
    allowAdministrators: false,
    allowRefresh: false,
    confidential: false,
    allowedSubjects: [userNameKey(SERVICE_USER_NAME)],
  };
  if ((await applications.create(application, sealed)) === null)
    return `application ${applicationKey}: registered`;
  const found = await applications.findEnabled(applicationKey);
  if (found === null) throw new CommandError(`application ${applicationKey} is disabled`);
  const known = found.sealedSecrets.flatMap((each) => box.tryOpen(purpose, each) ?? []);
  if (isProven({ given: secret }, known)) return `application ${applicationKey}: there already`;
  const rotation = { applicationKey, sealed, previousExpiresInSeconds: null, force: true };
  await applications.changeSecrets(applicationKey, (unexpired) => rotateSecret(unexpired, rotation));
  return `application ${applicationKey}: has the new secret too`;
}
