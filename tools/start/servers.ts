import { join } from 'node:path';
import { createDatabases, databaseUrls, type ServiceDatabase } from '#infrastructure/databases.ts';
import { findPostgresqlBinaries } from '#infrastructure/postgresql-binaries.ts';
import { startPostgresql } from '#infrastructure/postgresql.ts';
import { startRabbitmq, type StartedRabbitmq } from '#infrastructure/rabbitmq.ts';
import { findRunAs } from '#infrastructure/run-as.ts';
import { PRIVATE_SECRETS, type StartContext } from './context.ts';
import { SERVICES } from './deployables.ts';
import type { PlatformSettings } from './environments.ts';
import { checkBroker, checkDatabase, withoutCredentials } from './external-servers.ts';

/** The services' databases: in the one that DATABASE_URL names, else each its own on a private server. */
export async function openDatabases(context: StartContext): Promise<PlatformSettings['databases']> {
  const { databaseUrl } = context.external;
  if (databaseUrl !== null) {
    const title = `PostgreSQL at ${withoutCredentials(databaseUrl)}`;
    await context.progress.step(title, () => checkDatabase(databaseUrl));
    const both = { owner: databaseUrl, app: databaseUrl };
    return { auth: both, settings: both, task: both };
  }
  return context.progress.step(`PostgreSQL on port ${context.args.ports.postgresql}`, () =>
    startPrivateDatabases(context),
  );
}

async function startPrivateDatabases(context: StartContext): Promise<PlatformSettings['databases']> {
  const runAs = findRunAs();
  const secrets = context.secrets(PRIVATE_SECRETS);
  const adminUrl = await startPostgresql(context.supervisor, {
    binaries: findPostgresqlBinaries(context.workspace, join(context.stateFolder, 'cache'), runAs),
    folder: join(context.stateFolder, 'postgresql'),
    port: context.args.ports.postgresql,
    password: secrets.get('postgresql-superuser'),
    runAs,
    durable: true,
  });
  const databases: ServiceDatabase[] = SERVICES.map(({ service }) => ({
    service,
    ownerPassword: secrets.get(`postgresql-${service}-owner`),
    appPassword: secrets.get(`postgresql-${service}-app`),
  }));
  await createDatabases(adminUrl, databases);
  const urls = databases.map((database) => [database.service, databaseUrls(adminUrl, database)]);
  return Object.fromEntries(urls) as PlatformSettings['databases'];
}

/** The broker's AMQP address: what RABBITMQ_URL says, else a private node. */
export async function openBroker(context: StartContext): Promise<string> {
  const { rabbitmqUrl } = context.external;
  if (rabbitmqUrl !== null) {
    const title = `RabbitMQ at ${withoutCredentials(rabbitmqUrl)}`;
    await context.progress.step(title, () => checkBroker(rabbitmqUrl));
    return rabbitmqUrl;
  }
  const broker = await context.progress.step(
    `RabbitMQ on port ${context.args.ports.rabbitmq}`,
    () => startPrivateBroker(context),
    ({ origin }) => `from ${origin}`,
  );
  return broker.amqp;
}

function startPrivateBroker(context: StartContext): Promise<StartedRabbitmq> {
  const { ports } = context.args;
  return startRabbitmq(context.supervisor, {
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
  });
}
