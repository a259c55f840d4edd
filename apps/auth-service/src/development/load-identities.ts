import { secret } from '@platform/service-defaults';
import { Client } from 'pg';
import { z } from 'zod';
import { ownerAddressShape } from '../migrations/migration-settings';
import { developmentApplications } from './development-identities';
import { writeDevelopmentApplications } from './write-development-applications.query';
import { writeExternalIdentities } from './write-external-identities.query';
import type { SqlConnection } from './write-development-identities.query';
import {
  writeInternalLegacy,
  writePersonDirectory,
  writeServiceProviders,
} from './write-development-identities.query';

/** What loading needs; it writes as the role that owns the tables. */
export const developmentConfigSchema = z.object({
  NODE_ENV: z
    .enum(['development', 'test'], 'development identities are never loaded in production')
    .default('development'),
  ...ownerAddressShape,
  DATABASE_URL: ownerAddressShape.DATABASE_URL.unwrap(),
  SECRET_ENCRYPTION_KEY: secret({ minBytes: 32 }),
  DEVELOPMENT_SERVICE_SECRET: z.string().min(16),
  /** The provider whose subjects are mapped to development identities; none unless given. */
  OPENID_ISSUER: z.url({ protocol: /^https?$/ }).optional(),
});

/** Loads the development identities and applications. Repeating it changes nothing. */
export async function loadDevelopmentIdentities(
  config: z.output<typeof developmentConfigSchema>,
): Promise<void> {
  const ownUrl = config.MIGRATION_DATABASE_URL ?? config.DATABASE_URL;
  const applications = developmentApplications(config.DEVELOPMENT_SERVICE_SECRET);
  const personUrl = config.PERSON_DIRECTORY_MIGRATION_DATABASE_URL ?? config.PERSON_DIRECTORY_DATABASE_URL;
  const internalUrl = config.INTERNAL_LEGACY_MIGRATION_DATABASE_URL ?? config.INTERNAL_LEGACY_DATABASE_URL;
  const providersUrl =
    config.SERVICE_PROVIDERS_MIGRATION_DATABASE_URL ?? config.SERVICE_PROVIDERS_DATABASE_URL;
  await Promise.all([
    inOneTransaction(personUrl ?? ownUrl, writePersonDirectory),
    inOneTransaction(internalUrl ?? ownUrl, writeInternalLegacy),
    inOneTransaction(providersUrl ?? ownUrl, writeServiceProviders),
    inOneTransaction(ownUrl, (connection) =>
      writeDevelopmentApplications(connection, applications, config.SECRET_ENCRYPTION_KEY),
    ),
  ]);
  const { OPENID_ISSUER: issuer } = config;
  if (issuer === undefined) return;
  await inOneTransaction(ownUrl, (connection) => writeExternalIdentities(connection, issuer));
}

async function inOneTransaction(
  url: string,
  write: (connection: SqlConnection) => Promise<void>,
): Promise<void> {
  const client = new Client({
    connectionString: url,
    application_name: 'auth-service-development-identities',
  });
  await client.connect();
  try {
    await client.query('BEGIN');
    await write(client);
    await client.query('COMMIT');
  } finally {
    // Without a COMMIT before it, ending the connection rolls back.
    await client.end();
  }
}
