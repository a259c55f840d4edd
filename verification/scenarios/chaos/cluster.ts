import { readFileSync, rmSync, symlinkSync } from 'node:fs';
import { basename, join } from 'node:path';
import { findFreePorts } from '#platform/ports.ts';
import { trySignal } from '#platform/processes.ts';
import { type Program, SERVICE_NAMES, type ServiceName } from '#platform/programs.ts';
import { type Variables, WORKSPACE } from '#platform/state-folder.ts';
import { TcpProxy, throughPort } from '#platform/tcp-proxy.ts';
import { PrivateServers, type TestPlatform } from '#platform/test-platform.ts';
import type { TemporaryPlace } from '#platform/private-servers.ts';
import { Balancer } from './balancer.ts';
import { StepClock } from './engines/clocks.ts';
import { Engines } from './engines/engines.ts';
import { TASK_VARIABLES } from '#verification/traffic/recurrences.ts';
import { DEPENDENCIES, type Dependency, labelOf, REPLICA_NAMES, type ReplicaName } from './plan.ts';

/** A link to the build that is started next. */
const RUNNING = 'dist/running';
/** How long a stopping service stays reachable. A multiple of the balancer's probe interval. */
const SHUTDOWN_GRACE_MS = 1_500;
/** Shorter than a caller's patience, so that callers hear 504 instead of giving up. */
const REQUEST_TIMEOUT_MS = 8_000;

/** One of the two places of a service. */
export interface Replica {
  readonly name: ReplicaName;
  readonly label: string;
  readonly metricsPort: number;
  readonly program: Program;
}

export interface ClusterOptions {
  /** Holds the bundles; what is in `dist` is built first. */
  readonly dist: string;
  /** Holds the build that is to be upgraded. */
  readonly release: string | null;
  /** Three machines, in the world of `runInWorld`. */
  readonly isClustered: boolean;
  /** With a PgBouncer. */
  readonly hasPooler: boolean;
  /** Of every replica, besides those of all runs. */
  readonly variables: Variables;
}

/**
 * A whole platform: servers, neighbours, two replicas of each service, balancers in front of them and
 * breakable wires behind them.
 */
export class Cluster {
  readonly platform: TestPlatform;
  readonly #servers: PrivateServers | Engines;
  readonly replicas: Replica[] = [];
  /** The folder of a release's build, from which the platform starts. Null: from the present one. */
  readonly #release: string | null;
  readonly #variables: Variables;
  readonly #proxies = new Map<string, TcpProxy>();
  readonly #balancers: Balancer[] = [];
  readonly #presentLogFiles = new Set<string>();
  readonly #frozenPids = new Set<number>();
  /** Of replicas, on three machines. */
  readonly #clocks = new Map<string, StepClock>();

  private constructor(
    servers: PrivateServers | Engines,
    platform: TestPlatform,
    { release, variables }: ClusterOptions,
  ) {
    this.#servers = servers;
    this.platform = platform;
    this.#release = release;
    this.#variables = variables;
  }

  /**
   * A cluster of which only the servers run; whoever opened it has to `stop()` it, even if `start()` fails.
   */
  static async open(options: ClusterOptions, report: (step: string) => void): Promise<Cluster> {
    const { dist, release, isClustered, hasPooler } = options;
    const build = dist === 'dist' ? {} : { projectRoots: [] };
    const running = release === null ? dist : RUNNING;
    const servers = isClustered
      ? await Engines.open(running, hasPooler, report)
      : await PrivateServers.open({ dist: running, ...build }, report);
    const cluster = new Cluster(servers, await servers.createPlatform(), options);
    if (cluster.isUpgrade) cluster.run('release');
    return cluster;
  }

  /** The servers of a platform that has one of each. */
  get servers(): PrivateServers {
    if (this.#servers instanceof Engines) throw new Error('there are several servers of each kind');
    return this.#servers;
  }

  /** The servers of a clustered platform. */
  get engines(): Engines {
    if (this.#servers instanceof Engines) return this.#servers;
    throw new Error('there is one server of each kind');
  }

  get isClustered(): boolean {
    return this.#servers instanceof Engines;
  }

  get place(): TemporaryPlace {
    return this.#servers.place;
  }

  /** True when the platform is not broken but upgraded. */
  get isUpgrade(): boolean {
    return this.#release !== null;
  }

  /** What is started from now on is of this build. What runs has resolved the link. */
  run(build: 'release' | 'present'): void {
    const link = join(WORKSPACE, RUNNING);
    rmSync(link, { force: true });
    symlinkSync(build === 'release' ? (this.#release ?? 'dist') : join(WORKSPACE, 'dist'), link);
  }

  /** The logs of processes of the present build in an upgrade, by file. */
  presentLogs(): ReadonlyMap<string, string> {
    return new Map([...this.#presentLogFiles].map((file) => [basename(file), readFileSync(file, 'utf8')]));
  }

  /** The replicas of a service that run now are of the present build. */
  notePresent(service: ServiceName): void {
    for (const { name, program } of this.replicas)
      if (name.service === service) this.#presentLogFiles.add(program.process.logFile);
  }

  async start(report: (step: string) => void): Promise<void> {
    const { platform } = this;
    await Promise.all(SERVICE_NAMES.map((name) => platform.migrate(name)));
    report('databases are migrated');
    await platform.startNeighbours();
    await this.#openNetwork();
    await Promise.all(this.replicas.map(({ program }) => program.start()));
    report(`${this.replicas.length} replicas are ready`);
  }

  replica(name: ReplicaName): Replica {
    const found = this.replicas.find(({ label }) => label === labelOf(name));
    if (found === undefined) throw new Error(`no replica ${labelOf(name)}`);
    return found;
  }

  proxy(name: ReplicaName, dependency: Dependency): TcpProxy {
    const found = this.#proxies.get(`${labelOf(name)} ${dependency}`);
    if (found === undefined) throw new Error(`no proxy between ${labelOf(name)} and ${dependency}`);
    return found;
  }

  /** True when every replica would get requests from its balancer now. */
  isBalanced(): boolean {
    const ready = this.#balancers.reduce((sum, balancer) => sum + balancer.readyCount, 0);
    return ready === this.replicas.length;
  }

  /** Stops processes until `thaw()`. Returns how many there were. */
  freeze(pids: readonly number[]): number {
    const stopped = pids.filter((pid) => trySignal(pid, 'SIGSTOP'));
    for (const pid of stopped) this.#frozenPids.add(pid);
    return stopped.length;
  }

  /** Sets the clock of a replica to so many seconds after the machine's. */
  stepClock(name: ReplicaName, offsetS: number): void {
    const clock = this.#clocks.get(labelOf(name));
    if (clock === undefined) throw new Error(`${labelOf(name)} has no clock of its own`);
    clock.step(offsetS);
  }

  thaw(): void {
    for (const pid of this.#frozenPids) trySignal(pid, 'SIGCONT');
    this.#frozenPids.clear();
  }

  /** Ends everything. It thaws first because a stopped process hears of nothing. */
  async stop(): Promise<void> {
    this.thaw();
    await Promise.all([...this.#balancers, ...this.#proxies.values()].map((part) => part.stop()));
    await this.#servers.close();
  }

  async #openNetwork(): Promise<void> {
    const { ports } = this.platform.settings;
    const targets: Partial<Record<Dependency, number>> = this.isClustered
      ? { auth: ports.auth }
      : {
          auth: ports.auth,
          database: this.servers.postgresql.port,
          broker: this.servers.rabbitmq.ports.amqp,
        };
    const own = await findFreePorts(2 * REPLICA_NAMES.length);
    for (const [index, name] of REPLICA_NAMES.entries()) {
      const [port = 0, metricsPort = 0] = own.slice(2 * index);
      const label = labelOf(name);
      for (const dependency of DEPENDENCIES[name.service]) {
        const port = targets[dependency];
        if (port === undefined) continue;
        const proxy = new TcpProxy(() => ({ host: '127.0.0.1', port }));
        await proxy.listen(0);
        this.#proxies.set(`${label} ${dependency}`, proxy);
      }
      const variables = {
        ...TASK_VARIABLES,
        // The pod's name in Kubernetes; by it a planted mistake may be one replica's.
        HOSTNAME: label,
        ...this.#variables,
        PORT: String(port),
        METRICS_PORT: String(metricsPort),
        SHUTDOWN_GRACE_MS: String(SHUTDOWN_GRACE_MS),
        ...this.#addresses(name),
        ...(this.isClustered ? this.#clockOf(label).environment : {}),
      };
      const program = this.platform.makeService(name.service, { name: label, variables });
      this.replicas.push({ name, label, metricsPort, program });
    }
    for (const service of SERVICE_NAMES) await this.#openBalancer(service, ports[service]);
  }

  async #openBalancer(service: ServiceName, port: number): Promise<void> {
    const replicas = this.replicas.filter(({ name }) => name.service === service);
    const replicaPorts = replicas.map(({ program }) => program.port);
    const balancer = new Balancer(service, replicaPorts);
    this.#balancers.push(balancer);
    await balancer.listen(port);
  }

  #clockOf(label: string): StepClock {
    const clock = new StepClock(label);
    this.#clocks.set(label, clock);
    return clock;
  }

  /** Through proxies, unless servers are several. */
  #addresses(name: ReplicaName): Variables {
    const { databases, mainBusUrl, schedulingBusUrl } = this.platform.settings;
    const variables: Readonly<Record<Dependency, (through: (url: string) => string) => Variables>> = {
      database: (through) => ({ DATABASE_URL: through(databases[name.service].app) }),
      auth: (through) => ({ AUTH_SERVICE_URL: new URL(through(this.platform.url('auth'))).origin }),
      broker: (through) => ({
        RABBITMQ_MAIN_URL: through(mainBusUrl),
        RABBITMQ_SCHEDULING_URL: through(schedulingBusUrl),
        REQUEST_TIMEOUT_MS: String(REQUEST_TIMEOUT_MS),
      }),
    };
    const chosen = DEPENDENCIES[name.service].map((dependency) => {
      if (this.isClustered && dependency !== 'auth')
        return variables[dependency]((url) => this.engines.urlFor(name.letter, url));
      const { port } = this.proxy(name, dependency);
      return variables[dependency]((url) => throughPort(url, port));
    });
    return Object.assign({}, ...chosen) as Variables;
  }
}
