import { join } from 'node:path';
import {
  createDatabases,
  databaseUrls,
  type DatabaseUrls,
  type ServiceDatabase,
} from '#platform/databases.ts';
import type { PlatformSettings } from '#platform/environments.ts';
import type { PortTable } from '#platform/ports.ts';
import { Postgresql } from '#platform/postgresql.ts';
import { SERVICE_NAMES } from '#platform/programs.ts';
import { Rabbitmq } from '#platform/rabbitmq.ts';
import { findRunAs } from '#platform/run-as.ts';
import { cacheFolder, SecretFile } from '#platform/state-folder.ts';
import type { Supervisor } from '#platform/supervisor.ts';
import {
  checkBroker,
  checkDatabase,
  type ExternalServers,
  secretFileName,
  withoutCredentials,
} from './external-servers.ts';
import type { Progress } from './terminal.ts';

/** Secrets of the private servers, and of the services on them. */
export const PRIVATE_SECRETS = 'secrets.json';

export interface ServersOptions {
  readonly supervisor: Supervisor;
  readonly stateFolder: string;
  readonly ports: PortTable;
  readonly external: ExternalServers;
  readonly progress: Progress;
}

/**
 * PostgreSQL and RabbitMQ of a start: the servers that the user named, otherwise private ones in the state
 * folder.
 */
export class Servers {
  readonly #options: ServersOptions;
  readonly #postgresql: Postgresql;
  readonly #rabbitmq: Rabbitmq;
  readonly #databases: readonly ServiceDatabase[];
  /** Settings that the programs' environments are made from. */
  readonly settings: PlatformSettings;

  constructor(options: ServersOptions) {
    const { supervisor, stateFolder, ports, external } = options;
    this.#options = options;
    const secrets = new SecretFile(join(stateFolder, PRIVATE_SECRETS));
    const secret = (name: string): string => secrets.get(name);
    const place = { supervisor, folder: stateFolder, cacheFolder: cacheFolder(), runAs: findRunAs(), secret };
    this.#postgresql = new Postgresql(place, { port: ports.postgresql, isDurable: true });
    this.#rabbitmq = new Rabbitmq(place, {
      amqp: ports.rabbitmq,
      management: ports['rabbitmq-management'],
      distribution: ports['rabbitmq-distribution'],
      epmd: ports['rabbitmq-epmd'],
    });
    this.#databases = SERVICE_NAMES.map((service) => ({
      service,
      ownerPassword: secret(`postgresql-${service}-owner`),
      appPassword: secret(`postgresql-${service}-app`),
    }));
    const file = secretFileName(external.databaseUrl);
    // One object per file: two would overwrite each other's new secrets.
    const serviceSecrets = file === PRIVATE_SECRETS ? secrets : new SecretFile(join(stateFolder, file));
    const brokerUrl = external.rabbitmqUrl ?? this.#rabbitmq.url;
    this.settings = {
      ports,
      databases: this.#databaseUrls(),
      mainBusUrl: brokerUrl,
      schedulingBusUrl: brokerUrl,
      secret: (name) => serviceSecrets.get(name),
      neighboursFolder: join(stateFolder, 'neighbours'),
    };
  }

  /** Checks the server that DATABASE_URL names, or starts a private one with roles and databases. */
  async openDatabases(): Promise<void> {
    const { progress, ports, external } = this.#options;
    const { databaseUrl, migrationUrl } = external;
    if (databaseUrl !== null) {
      const title = `PostgreSQL at ${withoutCredentials(databaseUrl)}`;
      return progress.step(title, async () => {
        await checkDatabase(databaseUrl);
        if (migrationUrl !== null) await checkDatabase(migrationUrl, 'MIGRATION_DATABASE_URL');
      });
    }
    await progress.step(`PostgreSQL on port ${ports.postgresql}`, async () => {
      await this.#postgresql.start();
      await createDatabases(this.#postgresql.url, this.#databases);
    });
  }

  /** Checks the broker that RABBITMQ_URL names, or starts a private node. */
  async openBroker(): Promise<void> {
    const { progress, ports, external } = this.#options;
    const { rabbitmqUrl } = external;
    if (rabbitmqUrl !== null) {
      const title = `RabbitMQ at ${withoutCredentials(rabbitmqUrl)}`;
      return progress.step(title, () => checkBroker(rabbitmqUrl));
    }
    await progress.step(
      `RabbitMQ on port ${ports.rabbitmq}`,
      () => this.#rabbitmq.start(),
      () => `from ${this.#rabbitmq.origin}`,
    );
  }

  /** Returns the database of DATABASE_URL for all services, otherwise one for each on the private server. */
  #databaseUrls(): PlatformSettings['databases'] {
    const { databaseUrl, migrationUrl } = this.#options.external;
    const urls = this.#databases.map((database): [string, DatabaseUrls] => [
      database.service,
      databaseUrl === null
        ? databaseUrls(this.#postgresql.url, database)
        : { owner: migrationUrl ?? databaseUrl, app: databaseUrl },
    ]);
    return Object.fromEntries(urls) as PlatformSettings['databases'];
  }
}
