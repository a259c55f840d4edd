import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BrokerManagement } from './broker-management.ts';
import { createDatabases, databaseUrls, dropDatabases, type ServiceDatabase } from './databases.ts';
import {
  localUrl,
  neighbourEnvironment,
  ownerEnvironment,
  type PlatformSettings,
  productionEnvironment,
  serviceEnvironment,
} from './environments.ts';
import { findFreePorts, findFreePortTable, type PortName } from './ports.ts';
import { type Postgresql, queryAt, type Statement } from './postgresql.ts';
import { makePostgresql, makeRabbitmq, openTemporaryPlace, type TemporaryPlace } from './private-servers.ts';
import {
  build,
  type Deployable,
  LOAD_IDENTITIES,
  NEIGHBOUR_STAGE,
  NEIGHBOURS,
  nodeProcess,
  Program,
  PROJECT_ROOTS,
  SERVICE_NAMES,
  type ServiceName,
  serviceOf,
} from './programs.ts';
import type { Rabbitmq } from './rabbitmq.ts';
import { SecretFile, type Variables } from './state-folder.ts';
import type { Supervisor } from './supervisor.ts';

/** Poll interval in ms, fine enough to measure how long a start takes. */
const READY_POLL_MS = 10;
/**
 * Each bus has its own virtual host, so that a message sent on the wrong bus does not arrive and the test
 * fails.
 */
const BUSES = ['main', 'scheduling'] as const;
export type BusName = (typeof BUSES)[number];

/** URLs of the servers that a platform uses, for their administrators. */
export interface ServerAddresses {
  readonly databaseUrl: string;
  readonly rabbitmqUrl: string;
  readonly managementUrl: string;
}

export interface TestPlatformOptions {
  readonly supervisor: Supervisor;
  /** Folder of the secrets and of the neighbours' ledgers. */
  readonly folder: string;
  readonly servers: ServerAddresses;
  readonly dist?: string;
  /** Options of Node for every program, e.g. a profiler's. */
  readonly nodeOptions?: readonly string[];
  /**
   * Also starts the identity provider. It uses plain http, which auth-service refuses in production mode, so
   * auth-service then runs with `NODE_ENV=test`.
   */
  readonly hasSingleSignOn?: boolean;
  readonly variables?: (settings: PlatformSettings) => Variables | Promise<Variables>;
  /** Called after the platform has been stopped. */
  readonly onStopped?: () => Promise<void>;
}

export interface ServiceOptions {
  readonly name?: string;
  readonly variables?: Variables;
  readonly nodeOptions?: readonly string[];
  readonly readyPath?: string;
}

export interface Ended {
  readonly exitCode: number | null;
  readonly output: string;
}

/**
 * Turns off auth-service's limits on sign-ins and refreshes: load tests sign in one user repeatedly, and
 * refresh few sessions.
 */
const UNLIMITED: Variables = { TOKENS_PER_HOUR: '0', REFRESH_TOKENS_PER_HOUR: '0' };

/** Programs of the build, run as in production, with their own databases, virtual hosts and free ports. */
export class TestPlatform {
  readonly settings: PlatformSettings;
  readonly programs: Program[] = [];
  readonly secrets: SecretFile;
  readonly #options: TestPlatformOptions;
  readonly #suffix: string;
  readonly #databases: readonly ServiceDatabase[];
  readonly #oneShots: { readonly name: string; readonly logFile: string }[] = [];
  #variables: Variables = {};

  private constructor(options: TestPlatformOptions, ports: PlatformSettings['ports']) {
    this.#options = options;
    this.#suffix = randomBytes(4).toString('hex');
    this.secrets = new SecretFile(join(options.folder, `${this.#suffix}.secret`));
    this.#databases = SERVICE_NAMES.map((name) => ({
      service: this.#databaseName(name),
      ownerPassword: this.secrets.get(`${name}-owner`),
      appPassword: this.secrets.get(`${name}-app`),
    }));
    const urls = this.#databases.map((database) => databaseUrls(options.servers.databaseUrl, database));
    this.settings = {
      ports,
      databases: Object.fromEntries(
        SERVICE_NAMES.map((name, index) => [name, urls[index]]),
      ) as unknown as PlatformSettings['databases'],
      mainBusUrl: this.#busUrl('main'),
      schedulingBusUrl: this.#busUrl('scheduling'),
      secret: (name) => this.secrets.get(name),
      neighboursFolder: join(options.folder, `${this.#suffix}-neighbours`),
    };
  }

  /** Creates databases and virtual hosts, and starts no program. The caller must stop the platform. */
  static async create(options: TestPlatformOptions): Promise<TestPlatform> {
    const platform = new TestPlatform(options, await findFreePortTable());
    await createDatabases(options.servers.databaseUrl, platform.#databases);
    for (const bus of BUSES) await platform.bus(bus).createVhost();
    platform.#variables = (await options.variables?.(platform.settings)) ?? {};
    return platform;
  }

  url(name: PortName): string {
    return localUrl(this.settings.ports[name]);
  }

  programAt(url: string): Program {
    const found = this.programs.find((program) => program.url === url);
    if (found === undefined) throw new Error(`nothing of this platform runs at ${url}`);
    return found;
  }

  /** Runs statements on a service's database as the server's administrator; returns the rows of the last. */
  query<Row extends object>(name: ServiceName, ...statements: readonly Statement[]): Promise<Row[]> {
    const url = new URL(this.#options.servers.databaseUrl);
    url.pathname = `/${this.#databaseName(name)}`;
    return queryAt<Row>(url.href, ...statements);
  }

  /** Returns the management API of a bus's virtual host. */
  bus(name: BusName): BrokerManagement {
    return new BrokerManagement(this.#options.servers.managementUrl, `${name}-${this.#suffix}`);
  }

  /**
   * Migrates the database of a service. In the auth service's database, also loads the development
   * identities, unless they are present.
   */
  async migrate(name: ServiceName, { withIdentities = true } = {}): Promise<void> {
    const service = serviceOf(name);
    // Production refuses the development identities.
    const variables = { ...ownerEnvironment(service, this.settings), NODE_ENV: 'test' };
    await this.#runBundle(`migrate-${service.name}`, service.migrate, variables);
    if (name === 'auth' && withIdentities)
      await this.#runBundle('load-identities', LOAD_IDENTITIES, variables);
  }

  /**
   * Migrates and starts these services, in the order of their dependencies.
   * @param overrides variables that replace a service's usual ones
   */
  async startServices(
    names: readonly ServiceName[],
    overrides: Readonly<Partial<Record<ServiceName, Variables>>> = {},
  ): Promise<void> {
    for (const name of SERVICE_NAMES.filter((one) => names.includes(one))) {
      await this.migrate(name);
      await this.startService(name, { variables: overrides[name] ?? {} });
    }
  }

  /** Migrates and starts all services and neighbours at once. */
  async startEverything(overrides: Readonly<Partial<Record<ServiceName, Variables>>> = {}): Promise<void> {
    await Promise.all(SERVICE_NAMES.map((name) => this.migrate(name)));
    const services = SERVICE_NAMES.map((name) =>
      this.makeService(name, { variables: overrides[name] ?? {} }),
    );
    await Promise.all([this.startNeighbours(), ...services.map((service) => service.start())]);
  }

  /** Starts another process of a service, on its own ports and the same databases. */
  async addReplica(name: ServiceName, options: ServiceOptions = {}): Promise<Program> {
    const [port, metricsPort] = await findFreePorts(2);
    const ports = { PORT: String(port), METRICS_PORT: String(metricsPort) };
    return this.startService(name, { ...options, variables: { ...ports, ...options.variables } });
  }

  startService(name: ServiceName, options: ServiceOptions = {}): Promise<Program> {
    return this.makeService(name, options).start(READY_POLL_MS);
  }

  makeService(name: ServiceName, { variables, nodeOptions = [], ...rest }: ServiceOptions = {}): Program {
    const service = serviceOf(name);
    const isDevelopment = name === 'auth' && this.#options.hasSingleSignOn === true;
    const env: Variables = {
      ...productionEnvironment(service, this.settings),
      ...(isDevelopment ? { ...serviceEnvironment(service, this.settings), NODE_ENV: 'test' } : {}),
      ...(name === 'auth' ? UNLIMITED : {}),
      ...this.#variables,
      ...variables,
    };
    const port = Number(env['PORT']);
    return this.#makeProgram({
      name: `${service.name}-${port}`,
      args: [...nodeOptions, this.#bundle(service.bundle)],
      env,
      port,
      ...rest,
    });
  }

  /** Starts a program that stands in for a service outside this platform. */
  startNeighbour(neighbour: Deployable): Promise<Program> {
    return this.#makeProgram({
      name: neighbour.name,
      args: [this.#bundle(neighbour.bundle)],
      env: { ...neighbourEnvironment(neighbour, this.settings), ...this.#variables },
      port: this.settings.ports[neighbour.port],
      stage: NEIGHBOUR_STAGE,
    }).start();
  }

  /** Starts the neighbours; the identity provider only with single sign-on. */
  async startNeighbours(): Promise<void> {
    const wanted = NEIGHBOURS.filter(
      ({ name }) => name !== 'identity-provider' || this.#options.hasSingleSignOn === true,
    );
    await Promise.all(wanted.map((neighbour) => this.startNeighbour(neighbour)));
  }

  async runToEnd(name: string, args: readonly string[], variables: Variables): Promise<Ended> {
    const { supervisor } = this.#options;
    const child = await supervisor.spawn({
      ...nodeProcess(name, args, this.#environment(variables)),
      oneShot: true,
    });
    await child.ended;
    return { exitCode: child.exitCode(), output: readFileSync(child.logFile, 'utf8') };
  }

  /** Returns the logs of this platform's programs so far, including ended ones and migrations. */
  logs(): ReadonlyMap<string, string> {
    const files = this.#oneShots.map(({ name, logFile }) => [name, readFileSync(logFile, 'utf8')] as const);
    return new Map([...files, ...this.programs.map((program) => [program.name, program.log()] as const)]);
  }

  /**
   * Ends every program that still runs, and drops databases and virtual hosts. Returns the programs' exit
   * codes.
   */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<(number | null)[]> {
    const exitCodes = await Promise.all(this.programs.map((program) => program.stop(signal)));
    await dropDatabases(this.#options.servers.databaseUrl, this.#databases);
    for (const bus of BUSES) await this.bus(bus).deleteVhost();
    await this.#options.onStopped?.();
    return exitCodes;
  }

  #makeProgram(spec: ConstructorParameters<typeof Program>[1] & { readonly env: Variables }): Program {
    const { supervisor, nodeOptions = [] } = this.#options;
    const args = [...nodeOptions, ...spec.args];
    const program = new Program(supervisor, { ...spec, args, env: this.#environment(spec.env) });
    this.programs.push(program);
    return program;
  }

  async #runBundle(name: string, bundle: string, variables: Variables): Promise<void> {
    const { supervisor } = this.#options;
    await supervisor.run(
      nodeProcess(name, [this.#bundle(bundle)], this.#environment({ ...variables, ...this.#variables })),
    );
    this.#oneShots.push({ name, logFile: supervisor.find(name)?.logFile ?? '' });
  }

  /** Passes on PATH and HOME of this process's environment, and nothing else. */
  #environment(variables: Variables): NodeJS.ProcessEnv {
    const { PATH, HOME } = process.env;
    return { PATH, HOME, ...variables };
  }

  #bundle(path: string): string {
    return path.replace(/^dist/, this.#options.dist ?? 'dist');
  }

  #databaseName(name: ServiceName): string {
    return `${name}_${this.#suffix}`;
  }

  #busUrl(name: BusName): string {
    const url = new URL(this.#options.servers.rabbitmqUrl);
    url.pathname = `/${name}-${this.#suffix}`;
    return url.href;
  }
}

export interface PrivateServersOptions extends Pick<TestPlatformOptions, 'dist' | 'nodeOptions'> {
  /** Projects to build while the servers start; an empty list uses the existing build. */
  readonly projectRoots?: readonly string[];
}

/**
 * A durable PostgreSQL and a RabbitMQ that are removed at the end, and the programs that are started beside
 * them.
 */
export class PrivateServers implements ServerAddresses {
  readonly place: TemporaryPlace;
  readonly postgresql: Postgresql;
  readonly rabbitmq: Rabbitmq;
  readonly #options: PrivateServersOptions;

  private constructor(
    place: TemporaryPlace,
    servers: [Postgresql, Rabbitmq],
    options: PrivateServersOptions,
  ) {
    this.place = place;
    [this.postgresql, this.rabbitmq] = servers;
    this.#options = options;
  }

  static async open(
    options: PrivateServersOptions,
    progress: (line: string) => void,
  ): Promise<PrivateServers> {
    const { projectRoots = PROJECT_ROOTS } = options;
    const place = await openTemporaryPlace();
    try {
      progress(
        `starting PostgreSQL and RabbitMQ${projectRoots.length === 0 ? '' : ', building the services'}`,
      );
      // The servers are durable as in production, so that measurements and failures here also hold in
      // production.
      const servers: [Postgresql, Rabbitmq] = [await makePostgresql(place, true), await makeRabbitmq(place)];
      const built = projectRoots.length === 0 ? null : build(place.supervisor, projectRoots);
      await Promise.all([...servers.map((server) => server.start()), built]);
      return new PrivateServers(place, servers, options);
    } catch (error) {
      await place.supervisor.stop();
      throw error;
    }
  }

  get databaseUrl(): string {
    return this.postgresql.url;
  }

  get rabbitmqUrl(): string {
    return this.rabbitmq.url;
  }

  get managementUrl(): string {
    return this.rabbitmq.managementUrl;
  }

  createPlatform(): Promise<TestPlatform> {
    const { supervisor, folder } = this.place;
    return TestPlatform.create({ supervisor, folder, servers: this, ...this.#options });
  }

  /**
   * Starts a platform with these services on these servers.
   * @param overrides variables that replace a service's usual ones
   */
  async startPlatform(
    names: readonly ServiceName[],
    overrides: Readonly<Partial<Record<ServiceName, Variables>>> = {},
  ): Promise<TestPlatform> {
    const platform = await this.createPlatform();
    await platform.startServices(names, overrides);
    return platform;
  }

  /**
   * Starts a Node program of the workspace, e.g. `verification/bench/peers/bare-settings-read.ts`, that
   * serves HTTP at PORT and responds at `/ready`.
   */
  async startPeer(file: string, variables: Variables): Promise<Program> {
    const [port = 0] = await findFreePorts(1);
    const { PATH, HOME } = process.env;
    return new Program(this.place.supervisor, {
      name: `${file.replace(/\W/g, '-')}-${port}`,
      args: [...(this.#options.nodeOptions ?? []), '--expose-gc', file],
      env: { PATH, HOME, NODE_ENV: 'production', ...variables, PORT: String(port) },
      port,
      readyPath: '/ready',
    }).start(READY_POLL_MS);
  }

  close(): Promise<void> {
    return this.place.supervisor.stop();
  }
}
