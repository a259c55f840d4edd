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

/** A symbolic link to the build from which the next program starts. */
const RUNNING = 'dist/running';
/** Time for which a stopping service stays reachable. A multiple of the balancer's probe interval. */
const SHUTDOWN_GRACE_MS = 1_500;
/** Shorter than a caller's timeout of 15 s, so that callers get a 504 instead of timing out. */
const REQUEST_TIMEOUT_MS = 8_000;

/** One of the two replicas of a service. */
export interface Replica {
  readonly name: ReplicaName;
  readonly label: string;
  readonly metricsPort: number;
  readonly program: Program;
}

export interface TestbedOptions {
  /** Folder of the bundles. `dist` is built first. */
  readonly dist: string;
  /** Folder of the earlier build that the run upgrades. Null: no upgrade. */
  readonly release: string | null;
  /** True: three machines. Requires `runInNamespaces`. */
  readonly isClustered: boolean;
  /** True: replicas `a` connect through a PgBouncer. */
  readonly hasPooler: boolean;
  /** Additional variables of every replica. */
  readonly variables: Variables;
}

/**
 * The platform under test: servers, neighbours, two replicas of each service, a balancer before each service,
 * and on one machine a proxy between each replica and each of its servers, which can break the connections.
 */
export class Testbed {
  readonly platform: TestPlatform;
  readonly #servers: PrivateServers | Engines;
  readonly replicas: Replica[] = [];
  /** Folder of the release from which the platform starts. Null: it starts from the present build. */
  readonly #release: string | null;
  readonly #variables: Variables;
  readonly #proxies = new Map<string, TcpProxy>();
  readonly #balancers: Balancer[] = [];
  readonly #presentLogFiles = new Set<string>();
  readonly #frozenPids = new Set<number>();
  /** Clocks of the replicas by label, on three machines. */
  readonly #clocks = new Map<string, StepClock>();

  private constructor(
    servers: PrivateServers | Engines,
    platform: TestPlatform,
    { release, variables }: TestbedOptions,
  ) {
    this.#servers = servers;
    this.platform = platform;
    this.#release = release;
    this.#variables = variables;
  }

  /** Opens a testbed and starts only its servers. The caller must `stop()` it, even if `start()` fails. */
  static async open(options: TestbedOptions, report: (step: string) => void): Promise<Testbed> {
    const { dist, release, isClustered, hasPooler } = options;
    const build = dist === 'dist' ? {} : { projectRoots: [] };
    const running = release === null ? dist : RUNNING;
    const servers = isClustered
      ? await Engines.open(running, hasPooler, report)
      : await PrivateServers.open({ dist: running, ...build }, report);
    const testbed = new Testbed(servers, await servers.createPlatform(), options);
    if (testbed.isUpgrade) testbed.useBuild('release');
    return testbed;
  }

  /** The servers, on one machine. @throws {Error} on three machines */
  get servers(): PrivateServers {
    if (this.#servers instanceof Engines) throw new Error('there are several servers of each kind');
    return this.#servers;
  }

  /** The clustered servers, on three machines. @throws {Error} on one machine */
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

  /** True if the run upgrades the platform and injects no faults. */
  get isUpgrade(): boolean {
    return this.#release !== null;
  }

  /** Selects the build for programs that start from now on. Running programs keep theirs. */
  useBuild(build: 'release' | 'present'): void {
    const link = join(WORKSPACE, RUNNING);
    rmSync(link, { force: true });
    symlinkSync(build === 'release' ? (this.#release ?? 'dist') : join(WORKSPACE, 'dist'), link);
  }

  /** In an upgrade, the logs of processes of the present build, by file. */
  presentLogs(): ReadonlyMap<string, string> {
    return new Map([...this.#presentLogFiles].map((file) => [basename(file), readFileSync(file, 'utf8')]));
  }

  /** Records that the running replicas of a service are of the present build. */
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

  /** True if every replica is ready for its balancer. */
  isBalanced(): boolean {
    const ready = this.#balancers.reduce((sum, balancer) => sum + balancer.readyCount, 0);
    return ready === this.replicas.length;
  }

  /** Stops processes (SIGSTOP) until `thaw()`. Returns their number. */
  freeze(pids: readonly number[]): number {
    const stopped = pids.filter((pid) => trySignal(pid, 'SIGSTOP'));
    for (const pid of stopped) this.#frozenPids.add(pid);
    return stopped.length;
  }

  /** Sets the offset of a replica's clock from the machine's clock. */
  stepClock(name: ReplicaName, offsetS: number): void {
    const clock = this.#clocks.get(labelOf(name));
    if (clock === undefined) throw new Error(`${labelOf(name)} has no clock of its own`);
    clock.step(offsetS);
  }

  thaw(): void {
    for (const pid of this.#frozenPids) trySignal(pid, 'SIGCONT');
    this.#frozenPids.clear();
  }

  /** Stops all programs and servers. Thaws processes first, because a stopped process ignores SIGTERM. */
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
        // The pod's name in Kubernetes. A planted mistake uses it to affect only one replica.
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

  /** The variables with a replica's server addresses: through its proxies, or direct to clustered servers. */
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
