import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { createDatabases, databaseUrls, type ServiceDatabase } from './databases.ts';
import { findFreePorts } from './free-ports.ts';
import type { RabbitmqUrls } from './rabbitmq-node.ts';
import { SecretFile } from './secrets.ts';
import type { Supervisor } from './supervisor.ts';
import { openTemporaryPlace } from './test-infrastructure.ts';
import { answersOk, waitUntilReady } from './wait-until.ts';
import { LOAD_IDENTITIES, PROJECT_ROOTS, SERVICES } from './programs.ts';
import type { Deployable, Service, ServiceName } from './programs.ts';
import { localUrl, neighbourEnvironment, ownerEnvironment, serviceEnvironment } from './environments.ts';
import type { PlatformSettings, Variables } from './environments.ts';
import { startServers } from './laboratory-servers.ts';
import { PORT_NAMES, type PortTable } from './ports.ts';

const SERVER_STAGE = 3;
const READY_TIMEOUT_MS = 60_000;
/** Fine enough for the time of a start to be a figure. */
const READY_POLL_MS = 10;
export const WORKSPACE = join(import.meta.dirname, '../..');

/** A program under test. */
export interface RunningProgram {
  readonly url: string;
  readonly pid: number;
  readonly logFile: string;
  hasEnded(): boolean;
  /** From the start of the process to its first good answer. */
  readonly readyAfterMs: number;
  /** Ends it; a benchmark that is over must not take time from the next. */
  stop(): Promise<void>;
}

/** The services that were asked for, with databases of their own. */
export interface RunningServices {
  readonly settings: PlatformSettings;
  readonly programs: Readonly<Partial<Record<ServiceName, RunningProgram>>>;
  stop(): Promise<void>;
}

export interface LaboratoryOptions {
  readonly nodeOptions?: readonly string[];
  readonly projectRoots?: readonly string[];
}

/** A durable private PostgreSQL, a private RabbitMQ, and whatever programs of the platform are started beside them. */
export class Laboratory {
  /** URL of PostgreSQL's superuser. */
  readonly databaseUrl: string;
  readonly rabbitmqUrl: string;
  readonly managementUrl: string;
  readonly #supervisor: Supervisor;
  readonly #folder: string;
  readonly #nodeOptions: readonly string[];

  private constructor(
    supervisor: Supervisor,
    folder: string,
    nodeOptions: readonly string[],
    servers: { databaseUrl: string; broker: RabbitmqUrls },
  ) {
    this.#supervisor = supervisor;
    this.#folder = folder;
    this.#nodeOptions = nodeOptions;
    this.databaseUrl = servers.databaseUrl;
    this.rabbitmqUrl = servers.broker.amqp;
    this.managementUrl = servers.broker.management ?? '';
  }

  /** @param nodeOptions options of Node for the programs under test, e.g. a profiler's
   *  @param projectRoots what to build, e.g. PROJECT_ROOTS; nothing: what was built before is tested */
  static async open(
    { nodeOptions = [], projectRoots = PROJECT_ROOTS }: LaboratoryOptions,
    progress: (line: string) => void,
  ): Promise<Laboratory> {
    const { folder, supervisor } = await openTemporaryPlace();
    try {
      progress(
        `starting PostgreSQL and RabbitMQ${projectRoots.length === 0 ? '' : ', building the services'}`,
      );
      const [databaseUrl, broker] = await Promise.all([
        ...startServers(supervisor, folder, WORKSPACE),
        projectRoots.length === 0
          ? null
          : supervisor.run(command('build', ['tools/build/bundle.ts', ...projectRoots], process.env)),
      ]);
      return new Laboratory(supervisor, folder, nodeOptions, { databaseUrl, broker });
    } catch (error) {
      await supervisor.stop();
      throw error;
    }
  }

  /** Migrates new databases, loads the development identities, and starts one production process of each service, auth-service first.
   *  @param overrides variables over what a service would get */
  async startServices(
    names: readonly ServiceName[],
    overrides: Readonly<Partial<Record<ServiceName, Variables>>> = {},
  ): Promise<RunningServices> {
    const settings = await this.makeSettings();
    const programs: Partial<Record<ServiceName, RunningProgram>> = {};
    for (const service of SERVICES.filter((one) => names.includes(one.service))) {
      await this.migrate(service.service, settings);
      programs[service.service] = await this.startService(service, settings, overrides[service.service]);
    }
    const stop = async (): Promise<void> => {
      await Promise.all(Object.values(programs).map((program) => program.stop()));
    };
    return { settings, programs, stop };
  }

  /** Starts a Node program of the workspace, e.g. `tools/bench/peers/bare-settings-read.ts`, that serves HTTP at PORT and answers `/ready`. */
  async startPeer(file: string, variables: Variables): Promise<RunningProgram> {
    const [port] = (await findFreePorts(1)) as [number];
    const url = localUrl(port);
    const env = { NODE_ENV: 'production', ...variables, PORT: String(port) };
    return this.startProgram(file.replace(/\W/g, '-'), ['--expose-gc', file], env, `${url}/ready`);
  }

  /** Another process of a service on the same databases. */
  startService(
    service: Service,
    settings: PlatformSettings,
    overrides: Variables = {},
  ): Promise<RunningProgram> {
    const env = { ...productionEnvironment(service, settings), ...overrides };
    const name = `${service.name}-${env['PORT']}`;
    return this.startProgram(
      name,
      ['--enable-source-maps', service.bundle],
      env,
      `${localUrl(Number(env['PORT']))}/health/ready`,
    );
  }

  /** A process that plays a service which is not ours. */
  startNeighbour(neighbour: Deployable, settings: PlatformSettings): Promise<RunningProgram> {
    const url = `${localUrl(settings.ports[neighbour.port])}/health/ready`;
    return this.startProgram(
      neighbour.name,
      [neighbour.bundle],
      neighbourEnvironment(neighbour, settings),
      url,
    );
  }

  /** Migrates the database of a service, whether it is started later or not. */
  async migrate(name: ServiceName, settings: PlatformSettings): Promise<void> {
    const service = SERVICES.find((one) => one.service === name)!;
    // Development mode for these two only: production refuses the development identities.
    const env = { ...process.env, ...ownerEnvironment(service, settings) };
    await this.#supervisor.run(command(`migrate-${service.name}`, [service.migrate], env));
    if (service.service === 'auth')
      await this.#supervisor.run(command('load-identities', [LOAD_IDENTITIES], env));
  }

  close(): Promise<void> {
    return this.#supervisor.stop();
  }

  private async makeSettings(): Promise<PlatformSettings> {
    const free = await findFreePorts(PORT_NAMES.length);
    const ports = Object.fromEntries(PORT_NAMES.map((name, index) => [name, free[index]])) as PortTable;
    const secrets = new SecretFile(join(this.#folder, `${randomBytes(6).toString('hex')}.secret`));
    const suffix = randomBytes(4).toString('hex');
    const named = SERVICES.map(({ service }): [ServiceName, ServiceDatabase] => [
      service,
      {
        service: `${service}_${suffix}`,
        ownerPassword: secrets.get(`${service}-owner`),
        appPassword: secrets.get(`${service}-app`),
      },
    ]);
    await createDatabases(
      this.databaseUrl,
      named.map(([, database]) => database),
    );
    return {
      ports,
      databases: Object.fromEntries(
        named.map(([service, database]) => [service, databaseUrls(this.databaseUrl, database)]),
      ) as PlatformSettings['databases'],
      rabbitmqUrl: this.rabbitmqUrl,
      secret: (name) => secrets.get(name),
      neighboursFolder: join(this.#folder, 'neighbours'),
    };
  }

  private async startProgram(
    name: string,
    args: string[],
    variables: Variables,
    readyUrl: string,
  ): Promise<RunningProgram> {
    const { PATH = '', HOME = '' } = process.env;
    const startedAtMs = performance.now();
    const child = await this.#supervisor.spawn(
      command(name, [...this.#nodeOptions, ...args], { PATH, HOME, ...variables }),
    );
    await waitUntilReady(child, answersOk(readyUrl), READY_TIMEOUT_MS, READY_POLL_MS);
    const readyAfterMs = performance.now() - startedAtMs;
    const stop = async (): Promise<void> => {
      if (!child.hasEnded()) process.kill(child.pid, 'SIGTERM');
      await child.ended;
    };
    const { pid, logFile } = child;
    const hasEnded = (): boolean => child.hasEnded();
    return { url: new URL(readyUrl).origin, pid, logFile, readyAfterMs, hasEnded, stop };
  }
}

/** What a service is started with in production. */
export function productionEnvironment(service: Service, settings: PlatformSettings): Variables {
  const variables = serviceEnvironment(service, settings);
  // The development identity provider is not there, and production would refuse its plain HTTP.
  const openid = Object.keys(variables).filter(
    (name) => name.startsWith('OPENID_') || name.startsWith('DEVELOPMENT_'),
  );
  const kept = Object.fromEntries(Object.entries(variables).filter(([name]) => !openid.includes(name)));
  return { ...kept, NODE_ENV: 'production', SHUTDOWN_GRACE_MS: '0' };
}

function command(name: string, args: string[], env: NodeJS.ProcessEnv) {
  return { name, stage: SERVER_STAGE, command: process.execPath, args, env, cwd: WORKSPACE, graceMs: 30_000 };
}
