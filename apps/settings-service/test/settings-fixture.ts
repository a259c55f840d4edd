import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import { runMigrations } from '@platform/database';
import { Persona } from '@platform/personas';
import { createServiceApplication } from '@platform/service-defaults';
import {
  authServiceVariables,
  bearer,
  createTestDatabase,
  sharedMigration,
  startAuthServiceDouble,
  watchLog,
  watchTraffic,
} from '@platform/testing';
import type { AuthServiceDouble, TestDatabase } from '@platform/testing';
import request from 'supertest';
import { loadSettingsServiceConfig } from '../src/config';
import { MIGRATIONS, SCHEMA, appRoleGrants } from '../src/database-layout';
import { settingsService } from '../src/service-definition';

/**
 * The environment of a settings service: a database of its own with the role that the service has in
 * production, and tokens.
 */
export interface SettingsSurroundings {
  database: TestDatabase;
  auth: AuthServiceDouble;
  /** Environment variables of the service. */
  environment: Record<string, string>;
  close(): Promise<void>;
}

/** A settings service, or several replicas of it. */
export interface SettingsFixture extends SettingsSurroundings {
  replicas: NestFastifyApplication[];
  /** Sends requests to the first replica. */
  api: ReturnType<typeof request>;
  /** Base URL of each replica. */
  urls: string[];
}

interface Options {
  /** Maps the database URL to the one that the service uses, such as that of a proxy. */
  databaseUrl?: (url: string) => string | Promise<string>;
  /** Superuser URL of the database server. Default: the server of the test run. */
  server?: string;
}

const SECRET = Buffer.from('a-secret-of-at-least-32-bytes-for-tests').toString('base64url');
export const migrate = sharedMigration('settings_service', (ownerUrl, appRole) =>
  runMigrations(migrationSettings(ownerUrl), { appRole, appRoleGrants }),
);

/** Authorization headers by persona. */
export const PARTNER = bearer({
  sub: 'userid:9001',
  identityType: 'internal-legacy',
  userId: 9001,
  personId: undefined,
  name: 'Ivy Internal',
  personas: Persona.InternalPartner,
});
export const CUSTOMER = bearer({ personas: Persona.Customer });
export const OWNER = bearer({ personas: Persona.Owner });
export const RESIDENT = bearer({ personas: Persona.Resident });
export const SERVICE_PROVIDER = bearer({ personas: Persona.ServiceProvider });
export const NOBODY = bearer({ personas: Persona.None });

/** Prepares everything except the service. */
export async function prepareSettings({
  databaseUrl = (url) => url,
  server,
}: Options = {}): Promise<SettingsSurroundings> {
  const database = await createTestDatabase({ migrate, server });
  const auth = await startAuthServiceDouble();
  const close = async (): Promise<void> => {
    await auth.close();
    await database.drop();
  };
  return { database, auth, environment: environmentFor(await databaseUrl(database.url), auth.url), close };
}

/** Starts replicas in this process, each listening on its own port. */
export async function startSettings({
  replicas: count = 1,
  variables = {},
  surroundings: given,
  ...options
}: Options & {
  replicas?: number;
  /** Additional environment variables. */
  variables?: Record<string, string>;
  /** The environment of another fixture, which remains responsible for closing it. */
  surroundings?: SettingsSurroundings;
} = {}): Promise<SettingsFixture> {
  const surroundings = given ?? (await prepareSettings(options));
  const config = loadSettingsServiceConfig({ ...surroundings.environment, ...variables });
  const replicas: NestFastifyApplication[] = [];
  for (let index = 0; index < count; index += 1) {
    const replica = await createServiceApplication({
      ...settingsService(config),
      logSink: watchLog('settings-service'),
    });
    watchTraffic('settings-service', replica.getHttpServer());
    await replica.listen(0, '127.0.0.1');
    replicas.push(replica);
  }
  const urls = await Promise.all(replicas.map((replica) => replica.getUrl()));
  return {
    ...surroundings,
    replicas,
    urls,
    api: request(urls[0] ?? ''),
    close: async () => {
      for (const replica of replicas) await replica.close();
      if (given === undefined) await surroundings.close();
    },
  };
}

/** Returns the path of a setting. */
export function settingPath(subsystemName: string, settingName: string): string {
  const [subsystem, setting] = [subsystemName, settingName].map(encodeURIComponent);
  return `/platform/v1/subsystems/${String(subsystem)}/settings/${String(setting)}`;
}

function migrationSettings(url: string): Parameters<typeof runMigrations>[0] {
  return { url, schema: SCHEMA, applicationName: 'settings-test', migrations: MIGRATIONS };
}

export function environmentFor(databaseUrl: string, authServiceUrl: string): Record<string, string> {
  return {
    NODE_ENV: 'test',
    PORT: '0',
    METRICS_PORT: '0',
    LOG_LEVEL: 'warn',
    DATABASE_URL: databaseUrl,
    ...authServiceVariables(authServiceUrl),
    CURSOR_HMAC_KEY: SECRET,
  };
}
