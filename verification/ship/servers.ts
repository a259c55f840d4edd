import { randomBytes } from 'node:crypto';
import type { KubernetesObject } from '#manifests/kubernetes-object.ts';
import { BrokerManagement } from '#platform/broker-management.ts';
import { createDatabases, type DatabaseUrls, databaseUrls } from '#platform/databases.ts';
import {
  makePostgresql,
  makeRabbitmq,
  openTemporaryPlace,
  type TemporaryPlace,
} from '#platform/private-servers.ts';
import { queryAt, type Statement } from '#platform/postgresql.ts';
import { SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import { TcpProxy } from '#platform/tcp-proxy.ts';
import type { PlatformUnderLoad } from '#verification/traffic/platform.ts';

/** The databases and the virtual host of one overlay, with addresses for containers. */
export interface Stage {
  /** Suffix of the names of its databases and virtual host. */
  readonly suffix: string;
  readonly databases: Readonly<Record<ServiceName, DatabaseUrls>>;
  readonly busUrl: string;
}

/** URLs with the credentials of the servers' administrators. */
interface Urls {
  readonly database: string;
  readonly broker: string;
  readonly management: string;
}

const POSTGRESQL_PORT = 5432;
const RABBITMQ_PORT = 5672;

/** A private PostgreSQL and RabbitMQ. Containers reach them at the usual ports of the given address. */
export class Servers {
  readonly #place: TemporaryPlace;
  readonly #host: string;
  readonly #proxies: TcpProxy[];
  readonly #urls: Urls;

  private constructor(place: TemporaryPlace, host: string, rest: { proxies: TcpProxy[]; urls: Urls }) {
    this.#place = place;
    this.#host = host;
    this.#proxies = rest.proxies;
    this.#urls = rest.urls;
  }

  /** Starts the servers. @param brokerPassword password of the user `platform` */
  static async open(host: string, brokerPassword: string): Promise<Servers> {
    const place = await openTemporaryPlace();
    const secret = (name: string): string => (name === 'rabbitmq' ? brokerPassword : place.secret(name));
    const postgresql = await makePostgresql(place, true);
    const rabbitmq = await makeRabbitmq({ ...place, secret });
    await Promise.all([postgresql.start(), rabbitmq.start()]);
    const proxies = await Promise.all(
      [
        [POSTGRESQL_PORT, postgresql.port],
        [RABBITMQ_PORT, rabbitmq.ports.amqp],
      ].map(async ([port = 0, target = 0]) => {
        const proxy = new TcpProxy(() => ({ host: '127.0.0.1', port: target }));
        await proxy.listen(port, host);
        return proxy;
      }),
    );
    const urls = { database: postgresql.url, broker: rabbitmq.url, management: rabbitmq.managementUrl };
    return new Servers(place, host, { proxies, urls });
  }

  get folder(): string {
    return this.#place.folder;
  }

  /** Creates databases `<service><suffix>` and a virtual host. @param password password of their roles */
  async stage(suffix: string, password: string): Promise<Stage> {
    const { database, broker, management } = this.#urls;
    const rolesOf = (
      service: ServiceName,
    ): { service: string; ownerPassword: string; appPassword: string } => ({
      service: `${service}${suffix}`,
      ownerPassword: password,
      appPassword: password,
    });
    await createDatabases(database, SERVICE_NAMES.map(rolesOf));
    const vhost = vhostOf(suffix);
    if (suffix !== '') await new BrokerManagement(management, vhost).createVhost();
    const moved = (url: string, port: number, path: string): string => {
      const address = new URL(url);
      Object.assign(address, { hostname: this.#host, port: String(port), pathname: path });
      return address.href;
    };
    const entries = SERVICE_NAMES.map((service) => {
      const { owner, app } = databaseUrls(database, rolesOf(service));
      const path = `/${service}${suffix}`;
      return [
        service,
        { owner: moved(owner, POSTGRESQL_PORT, path), app: moved(app, POSTGRESQL_PORT, path) },
      ] as const;
    });
    return {
      suffix,
      databases: Object.fromEntries(entries) as Record<ServiceName, DatabaseUrls>,
      busUrl: moved(broker, RABBITMQ_PORT, suffix === '' ? '' : `/${vhost}`),
    };
  }

  /** The interface of a stage for loads and audits. @param url returns the URL of a service or neighbour */
  platform({ suffix, busUrl }: Stage, url: PlatformUnderLoad['url']): PlatformUnderLoad {
    const { database, management } = this.#urls;
    return {
      url,
      query: <Row extends object>(service: ServiceName, ...statements: readonly Statement[]) => {
        const address = new URL(database);
        address.pathname = `/${service}${suffix}`;
        return queryAt<Row>(address.href, ...statements);
      },
      // Both buses share one virtual host.
      bus: () => new BrokerManagement(management, vhostOf(suffix)),
      settings: { mainBusUrl: busUrl, schedulingBusUrl: busUrl },
    };
  }

  async close(): Promise<void> {
    await Promise.all(this.#proxies.map((proxy) => proxy.stop()));
    await this.#place.supervisor.stop();
  }
}

function vhostOf(suffix: string): string {
  return suffix === '' ? '/' : `ship${suffix}`;
}

interface ExternalSecretSpec {
  readonly target: { readonly name: string };
  readonly data: readonly {
    readonly secretKey: string;
    readonly remoteRef: { readonly key: string; readonly property: string };
  }[];
}

/**
 * The secrets that External Secrets would create from a store, by `<secret>/<key>`. Equal remote references
 * have equal values.
 * @param prepared the manifests of the `prepare` step
 */
export function secretsOf(prepared: readonly KubernetesObject[], stage: Stage): Map<string, string> {
  const store = new Map<string, string>();
  const values = new Map<string, string>();
  for (const { kind, spec } of prepared) {
    if (kind !== 'ExternalSecret') continue;
    const { target, data } = spec as ExternalSecretSpec;
    for (const { secretKey, remoteRef } of data) {
      const place = `${remoteRef.key}/${remoteRef.property}`;
      const value = store.get(place) ?? valueFor(remoteRef, stage);
      store.set(place, value);
      values.set(`${target.name}/${secretKey}`, value);
    }
  }
  return values;
}

function valueFor(
  { key, property }: { key: string; property: string },
  { databases, busUrl }: Stage,
): string {
  const service: ServiceName = SERVICE_NAMES.find((name) => key.endsWith(`${name}-service`)) ?? 'auth';
  if (property === 'DATABASE_URL') return databases[service].app;
  if (property === 'MIGRATION_DATABASE_URL') return databases[service].owner;
  return property.startsWith('RABBITMQ_') ? busUrl : randomKey();
}

/** A new key as k8s/README.md prescribes: 32 random bytes in base64url. */
export function randomKey(): string {
  return randomBytes(32).toString('base64url');
}
