import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { crashPostgresql } from '#platform/crash-postgresql.ts';
import { createDatabases, databaseUrls, type DatabaseUrls } from '#platform/databases.ts';
import { FriendlyError } from '#platform/friendly-error.ts';
import { findPostgresqlBinaries } from '#platform/postgresql-binaries.ts';
import { startPostgresql, type PostgresqlOptions } from '#platform/postgresql.ts';
import { startRabbitmq, type StartedRabbitmq } from '#platform/rabbitmq.ts';
import type { RabbitmqPorts } from '#platform/rabbitmq-node.ts';
import type { RunAs } from '#platform/run-as.ts';
import type { SupervisedProcess, Supervisor } from '#platform/supervisor.ts';
import { SERVICE_NAMES, type ServiceName } from '../plan.ts';

/** Where the servers of a run are made. */
export interface ServerPlace {
  readonly supervisor: Supervisor;
  readonly workspace: string;
  readonly folder: string;
  readonly cacheFolder: string;
  readonly runAs: RunAs | null;
  readonly secret: (name: string) => string;
}

/** The virtual hosts of the two buses: what is sent over the wrong one is lost, and the audit finds it missing. */
export const VHOSTS = ['main', 'scheduling'] as const;

/** The run's PostgreSQL. It flushes as in production, so that what it acknowledged survives its crashes. */
export class Database {
  readonly #place: ServerPlace;
  readonly #options: PostgresqlOptions;
  #url = '';

  constructor(place: ServerPlace, port: number) {
    this.#place = place;
    this.#options = {
      binaries: findPostgresqlBinaries(place.workspace, place.cacheFolder, place.runAs),
      folder: join(place.folder, 'postgresql'),
      port,
      password: place.secret('postgresql-superuser'),
      runAs: place.runAs,
      durable: true,
    };
  }

  get port(): number {
    return this.#options.port;
  }

  async start(): Promise<void> {
    this.#url = await startPostgresql(this.#place.supervisor, this.#options);
  }

  /** Makes a database with an owner and an application role for each service. */
  async createDatabases(): Promise<Record<ServiceName, DatabaseUrls>> {
    const databases = SERVICE_NAMES.map((service) => ({
      service,
      ownerPassword: this.#place.secret(`${service}-owner`),
      appPassword: this.#place.secret(`${service}-app`),
    }));
    await createDatabases(this.#url, databases);
    const urls = databases.map((database) => [database.service, databaseUrls(this.#url, database)]);
    return Object.fromEntries(urls) as Record<ServiceName, DatabaseUrls>;
  }

  /** Runs statements as the superuser, one connection for all; gives the rows of the last. */
  async query<T extends pg.QueryResultRow>(
    database: ServiceName | 'postgres',
    ...statements: readonly (string | readonly [string, readonly unknown[]])[]
  ): Promise<T[]> {
    const url = new URL(this.#url);
    url.pathname = `/${database}`;
    const client = new pg.Client({ connectionString: url.href, connectionTimeoutMillis: 5_000 });
    client.on('error', () => undefined);
    try {
      await client.connect();
      let rows: T[] = [];
      for (const statement of statements) {
        const [text, values] = typeof statement === 'string' ? [statement, []] : statement;
        ({ rows } = await client.query<T>(text, [...values]));
      }
      return rows;
    } finally {
      await client.end();
    }
  }

  /** SIGQUIT: every session is cut off at once, and the next start recovers. */
  async stopImmediately(): Promise<void> {
    await endWith(running(this.#place.supervisor, 'postgresql'), 'SIGQUIT');
  }

  crash(): Promise<void> {
    return crashPostgresql(this.#url);
  }

  /** Every process of the server, so that all can be stopped and continued. */
  async processes(): Promise<number[]> {
    const backends = await this.query<{ pid: number }>('postgres', 'SELECT pid FROM pg_stat_activity');
    return [running(this.#place.supervisor, 'postgresql').pid, ...backends.map(({ pid }) => pid)];
  }
}

/** The run's RabbitMQ. */
export class Broker {
  readonly #place: ServerPlace;
  readonly #ports: RabbitmqPorts;
  #started: StartedRabbitmq | null = null;

  constructor(place: ServerPlace, ports: RabbitmqPorts) {
    this.#place = place;
    this.#ports = ports;
  }

  get port(): number {
    return this.#ports.amqp;
  }

  async start(): Promise<void> {
    this.#started = await startRabbitmq(this.#place.supervisor, {
      folder: join(this.#place.folder, 'rabbitmq'),
      cacheFolder: this.#place.cacheFolder,
      ports: this.#ports,
      password: this.#place.secret('rabbitmq'),
      runAs: this.#place.runAs,
    });
  }

  /** AMQP address of a bus, by way of `port`. */
  url(vhost: (typeof VHOSTS)[number], port = this.port): string {
    const url = new URL(this.#server.amqp);
    url.port = String(port);
    return `${url.href.replace(/\/$/, '')}/${vhost}`;
  }

  async createVhosts(): Promise<void> {
    const everything = JSON.stringify({ configure: '.*', write: '.*', read: '.*' });
    for (const vhost of VHOSTS) {
      await this.manage('PUT', `vhosts/${vhost}`);
      await this.manage('PUT', `permissions/${vhost}/platform`, everything);
    }
  }

  /** Runs `rabbitmqctl`. @throws {FriendlyError} where there is none */
  async control(...args: string[]): Promise<void> {
    const { control } = this.#server;
    if (control === null) throw new FriendlyError('this RabbitMQ has no rabbitmqctl to raise an alarm with');
    await control(...args);
  }

  async stop(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    await endWith(running(this.#place.supervisor, 'rabbitmq'), signal);
  }

  /** Asks the management API. */
  async manage(method: string, path: string, body?: string): Promise<unknown> {
    const url = new URL(this.#server.management ?? '');
    const login = Buffer.from(`${url.username}:${url.password}`).toString('base64');
    const answer = await fetch(`${url.origin}/api/${path}`, {
      method,
      headers: { authorization: `Basic ${login}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`broker management answered ${answer.status} to ${path}`);
    return text === '' ? null : JSON.parse(text);
  }

  get #server(): StartedRabbitmq {
    if (this.#started === null) throw new Error('the broker was not started');
    return this.#started;
  }
}

function running(supervisor: Supervisor, name: string): SupervisedProcess {
  const found = supervisor.find(name);
  if (found === null || found.hasEnded()) throw new Error(`${name} is not running`);
  return found;
}

async function endWith(child: SupervisedProcess, signal: NodeJS.Signals): Promise<void> {
  // A killed broker's helpers are in its process group; an orderly stop is its own business.
  process.kill(signal === 'SIGKILL' ? -child.pid : child.pid, signal);
  await child.ended;
  // Its ports are free again a moment later.
  await delay(100);
}
