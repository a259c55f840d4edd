import { join } from 'node:path';
import type { DatabaseUrls } from '#platform/databases.ts';
import { findFreePorts } from '#platform/free-ports.ts';
import { SecretFile } from '#platform/secrets.ts';
import { openStateFolder } from '#platform/state-folder.ts';
import type { Supervisor } from '#platform/supervisor.ts';
import { openTemporaryPlace } from '#platform/test-infrastructure.ts';
import { answersOk, waitUntilReady } from '#platform/wait-until.ts';
import { LOAD_IDENTITIES, NEIGHBOURS } from '#platform/programs.ts';
import { localUrl, neighbourEnvironment, type PlatformSettings } from '#platform/environments.ts';
import { PORT_NAMES, type PortTable } from '#platform/ports.ts';
import { SERVICE_NAMES, type ReplicaName, type ServiceName } from '../plan.ts';
import { preparationEnvironment, replicaEnvironment, serviceOf, throughPort } from './environments.ts';
import { Network, REPLICA_NAMES } from './network.ts';
import { Replica } from './replica.ts';
import { trySignal } from './signal.ts';
import { Broker, Database, type ServerPlace } from './servers.ts';

const NEIGHBOUR_STAGE = 2;
const READY_TIMEOUT_MS = 90_000;
/** Identity providers are for single sign-on, which a chaos run leaves out. */
const NEEDED_NEIGHBOURS = NEIGHBOURS.filter(({ name }) => name !== 'identity-provider');

/** What a run is made from. */
export interface ClusterOptions {
  readonly workspace: string;
  /** Folder that holds the bundles, normally `dist`. */
  readonly dist: string;
  /** Told of each step that is done. */
  readonly report: (step: string) => void;
}

/** A whole platform: servers, neighbours, two replicas of each service, balancers before and breakable wires behind them. */
export class Cluster {
  readonly supervisor: Supervisor;
  readonly network = new Network();
  readonly replicas: Replica[] = [];
  readonly database: Database;
  readonly broker: Broker;
  /** Processes of servers that stand still. */
  readonly frozen = new Set<number>();
  readonly secrets: ReadonlyMap<string, string>;
  readonly #options: ClusterOptions;
  readonly #place: ServerPlace;
  readonly #settings: PlatformSettings;
  readonly #ports: readonly number[];
  #databases: Record<ServiceName, DatabaseUrls> | null = null;

  private constructor(
    options: ClusterOptions,
    place: ServerPlace,
    secrets: Map<string, string>,
    ports: readonly number[],
  ) {
    this.#options = options;
    this.#place = place;
    this.supervisor = place.supervisor;
    this.secrets = secrets;
    const table = portTable(ports);
    this.database = new Database(place, table.postgresql);
    this.broker = new Broker(place, {
      amqp: table.rabbitmq,
      management: table['rabbitmq-management'],
      distribution: table['rabbitmq-distribution'],
      epmd: table['rabbitmq-epmd'],
    });
    this.#ports = ports.slice(PORT_NAMES.length);
    const databases = (): Record<ServiceName, DatabaseUrls> => this.#databaseUrls;
    this.#settings = {
      ports: table,
      secret: place.secret,
      neighboursFolder: join(place.folder, 'neighbours'),
      rabbitmqUrl: '',
      get databases() {
        return databases();
      },
    };
  }

  /** A cluster of which nothing runs yet; whoever opened it has to `stop()` it, even if `start()` fails. */
  static async open(options: ClusterOptions): Promise<Cluster> {
    const temporary = await openTemporaryPlace();
    const file = new SecretFile(join(temporary.folder, 'secrets.json'));
    const secrets = new Map<string, string>();
    const place: ServerPlace = {
      ...temporary,
      workspace: options.workspace,
      cacheFolder: join(openStateFolder(options.workspace), 'cache'),
      secret: (name) => {
        secrets.set(name, file.get(name));
        return file.get(name);
      },
    };
    const relays = REPLICA_NAMES.length * 3;
    const ports = await findFreePorts(PORT_NAMES.length + relays + 2 * REPLICA_NAMES.length);
    return new Cluster(options, place, secrets, ports);
  }

  async start(): Promise<void> {
    const { report } = this.#options;
    await Promise.all([this.#startDatabase(), this.broker.start().then(() => this.broker.createVhosts())]);
    report('PostgreSQL and RabbitMQ run');
    await this.#prepareDatabases();
    report('databases are migrated');
    await Promise.all(NEEDED_NEIGHBOURS.map(({ name }) => this.#startNeighbour(name)));
    await this.#openNetwork();
    await Promise.all(
      this.replicas.map(async (replica) => {
        await replica.spawn();
        await replica.waitUntilReady();
      }),
    );
    report(`${this.replicas.length} replicas are ready`);
  }

  /** The address of a service's balancer, or of a neighbour. */
  url(name: keyof PortTable): string {
    return localUrl(this.#settings.ports[name]);
  }

  replica(name: ReplicaName): Replica {
    const found = this.replicas.find(
      (replica) => replica.name.service === name.service && replica.name.letter === name.letter,
    );
    if (found === undefined) throw new Error(`no replica ${name.service}-${name.letter}`);
    return found;
  }

  /** Has whatever stands still go on. */
  thaw(): void {
    for (const pid of this.frozen) trySignal(pid, 'SIGCONT');
    this.frozen.clear();
  }

  /** Ends everything. Nobody may be left standing still: a stopped process hears of nothing. */
  async stop(): Promise<void> {
    this.thaw();
    this.network.close();
    await this.supervisor.stop();
  }

  async #startDatabase(): Promise<void> {
    await this.database.start();
    this.#databases = await this.database.createDatabases();
  }

  get #databaseUrls(): Record<ServiceName, DatabaseUrls> {
    if (this.#databases === null) throw new Error('the databases are not there yet');
    return this.#databases;
  }

  async #prepareDatabases(): Promise<void> {
    await Promise.all(
      SERVICE_NAMES.map((name) => this.#runToEnd(`migrate-${name}`, serviceOf(name).migrate, name)),
    );
    await this.#runToEnd('load-identities', LOAD_IDENTITIES, 'auth');
  }

  #runToEnd(name: string, bundle: string, service: ServiceName): Promise<void> {
    return this.supervisor.run({
      name,
      stage: NEIGHBOUR_STAGE,
      command: process.execPath,
      args: [this.#bundle(bundle)],
      env: { PATH: process.env['PATH'], ...preparationEnvironment(service, this.#settings) },
      cwd: this.#options.workspace,
    });
  }

  async #startNeighbour(name: string): Promise<void> {
    const neighbour = NEEDED_NEIGHBOURS.find((candidate) => candidate.name === name);
    if (neighbour === undefined) throw new Error(`there is no neighbour ${name}`);
    const child = await this.supervisor.spawn({
      name,
      stage: NEIGHBOUR_STAGE,
      command: process.execPath,
      args: [this.#bundle(neighbour.bundle)],
      env: {
        PATH: process.env['PATH'],
        ...neighbourEnvironment(neighbour, this.#settings),
        RABBITMQ_MAIN_URL: this.broker.url('main'),
        RABBITMQ_SCHEDULING_URL: this.broker.url('scheduling'),
      },
      cwd: this.#options.workspace,
    });
    const url = `${localUrl(this.#settings.ports[neighbour.port])}/health/ready`;
    await waitUntilReady(child, answersOk(url), READY_TIMEOUT_MS);
  }

  async #openNetwork(): Promise<void> {
    const { ports } = this.#settings;
    const targets = { database: this.database.port, broker: this.broker.port, auth: ports.auth };
    const relays = REPLICA_NAMES.length * 3;
    await this.network.openRelays(targets, this.#ports.slice(0, relays));
    const own = this.#ports.slice(relays);
    for (const [index, name] of REPLICA_NAMES.entries()) {
      const [port = 0, metricsPort = 0] = own.slice(2 * index);
      this.replicas.push(this.#makeReplica(name, port, metricsPort));
    }
    for (const service of SERVICE_NAMES) {
      const endpoints = this.replicas.filter(({ name }) => name.service === service);
      await this.network.openBalancer(service, ports[service], endpoints);
    }
  }

  #makeReplica(name: ReplicaName, port: number, metricsPort: number): Replica {
    const busPort = this.network.port(name, 'broker');
    const env = replicaEnvironment(name.service, this.#settings, {
      port,
      metricsPort,
      databaseUrl: throughPort(this.#databaseUrls[name.service].app, this.network.port(name, 'database')),
      authUrl: localUrl(this.network.port(name, 'auth')),
      mainBusUrl: this.broker.url('main', busPort),
      schedulingBusUrl: this.broker.url('scheduling', busPort),
    });
    const program = {
      bundle: this.#bundle(serviceOf(name.service).bundle),
      env,
      cwd: this.#options.workspace,
    };
    return new Replica(this.#place.supervisor, name, port, program);
  }

  /** The bundle of this run's build. */
  #bundle(path: string): string {
    return join(this.#options.workspace, path.replace(/^dist/, this.#options.dist));
  }
}

function portTable(ports: readonly number[]): PortTable {
  return Object.fromEntries(PORT_NAMES.map((name, index) => [name, ports[index]])) as unknown as PortTable;
}
