import { join } from 'node:path';
import { createDatabases, databaseUrls } from '#platform/databases.ts';
import type { DatabaseUrls, ServiceDatabase } from '#platform/databases.ts';
import { findPostgresqlBinaries } from '#platform/postgresql-binaries.ts';
import { startPostgresql, superuserUrl } from '#platform/postgresql.ts';
import { rabbitmqUrls, type RabbitmqOptions } from '#platform/rabbitmq-node.ts';
import { startRabbitmq } from '#platform/rabbitmq.ts';
import { findRunAs } from '#platform/run-as.ts';
import { PRIVATE_SECRETS, type StartContext } from './context.ts';
import { SERVICES } from '#platform/programs.ts';
import type { PlatformSettings } from '#platform/environments.ts';
import { checkBroker, checkDatabase, withoutCredentials } from './external-servers.ts';

/** Where the services find their databases: all in the one that DATABASE_URL names, else each its own on the private server. */
export function chooseDatabases(context: StartContext): PlatformSettings['databases'] {
  const { databaseUrl } = context.external;
  const urls = serviceDatabases(context).map((database): [string, DatabaseUrls] => [
    database.service,
    databaseUrl === null
      ? databaseUrls(adminUrl(context), database)
      : { owner: databaseUrl, app: databaseUrl },
  ]);
  return Object.fromEntries(urls) as PlatformSettings['databases'];
}

/** Checks the server that DATABASE_URL names, or starts a private one with roles and databases. */
export async function openDatabases(context: StartContext): Promise<void> {
  const { databaseUrl } = context.external;
  if (databaseUrl !== null) {
    const title = `PostgreSQL at ${withoutCredentials(databaseUrl)}`;
    return context.progress.step(title, () => checkDatabase(databaseUrl));
  }
  await context.progress.step(`PostgreSQL on port ${context.args.ports.postgresql}`, async () => {
    const runAs = findRunAs();
    await startPostgresql(context.supervisor, {
      binaries: findPostgresqlBinaries(context.workspace, join(context.stateFolder, 'cache'), runAs),
      folder: join(context.stateFolder, 'postgresql'),
      port: context.args.ports.postgresql,
      password: superuserPassword(context),
      runAs,
      durable: true,
    });
    await createDatabases(adminUrl(context), serviceDatabases(context));
  });
}

function serviceDatabases(context: StartContext): ServiceDatabase[] {
  const secrets = context.secrets(PRIVATE_SECRETS);
  return SERVICES.map(({ service }) => ({
    service,
    ownerPassword: secrets.get(`postgresql-${service}-owner`),
    appPassword: secrets.get(`postgresql-${service}-app`),
  }));
}

function adminUrl(context: StartContext): string {
  return superuserUrl(context.args.ports.postgresql, superuserPassword(context));
}

function superuserPassword(context: StartContext): string {
  return context.secrets(PRIVATE_SECRETS).get('postgresql-superuser');
}

/** The broker's AMQP address: what RABBITMQ_URL says, else the private node's. */
export function chooseBroker(context: StartContext): string {
  return context.external.rabbitmqUrl ?? rabbitmqUrls(brokerOptions(context)).amqp;
}

/** Checks the broker that RABBITMQ_URL names, or starts a private node. */
export async function openBroker(context: StartContext): Promise<void> {
  const { rabbitmqUrl } = context.external;
  if (rabbitmqUrl !== null) {
    const title = `RabbitMQ at ${withoutCredentials(rabbitmqUrl)}`;
    return context.progress.step(title, () => checkBroker(rabbitmqUrl));
  }
  await context.progress.step(
    `RabbitMQ on port ${context.args.ports.rabbitmq}`,
    () => startRabbitmq(context.supervisor, brokerOptions(context)),
    ({ origin }) => `from ${origin}`,
  );
}

function brokerOptions(context: StartContext): RabbitmqOptions & { readonly cacheFolder: string } {
  const { ports } = context.args;
  return {
    folder: join(context.stateFolder, 'rabbitmq'),
    cacheFolder: join(context.stateFolder, 'cache'),
    ports: {
      amqp: ports.rabbitmq,
      management: ports['rabbitmq-management'],
      distribution: ports['rabbitmq-distribution'],
      epmd: ports['rabbitmq-epmd'],
    },
    password: context.secrets(PRIVATE_SECRETS).get('rabbitmq'),
    runAs: findRunAs(),
  };
}
