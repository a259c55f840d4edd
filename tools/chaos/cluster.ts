import { findFreePorts } from '#platform/ports.ts';
import { trySignal } from '#platform/process-identity.ts';
import { type Program, SERVICE_NAMES } from '#platform/programs.ts';
import type { Variables } from '#platform/state-folder.ts';
import { throughPort } from '#platform/tcp-proxy.ts';
import { PrivateServers, type TestPlatform } from '#platform/test-platform.ts';
import { Network, REPLICA_NAMES } from './network.ts';
import type { ReplicaName } from './plan.ts';

/** How long a stopping service stays reachable. A multiple of the balancer's probe interval. */
const SHUTDOWN_GRACE_MS = 1_500;
/** Shorter than a caller's patience, so that callers hear 504 instead of giving up. */
const REQUEST_TIMEOUT_MS = 8_000;

/** What a run is made from. */
export interface ClusterOptions {
  /** Folder that holds the bundles; what is in `dist` is built first. */
  readonly dist: string;
  /** Told of each step that is done. */
  readonly report: (step: string) => void;
}

/** One of the two places of a service. */
export interface Replica {
  readonly name: ReplicaName;
  readonly label: string;
  readonly program: Program;
}

/** A whole platform: servers, neighbours, two replicas of each service, balancers before and breakable wires behind them. */
export class Cluster {
  readonly servers: PrivateServers;
  readonly platform: TestPlatform;
  readonly network = new Network();
  readonly replicas: Replica[] = [];
  /** Processes of servers that stand still. */
  readonly #frozen = new Set<number>();
  readonly #report: (step: string) => void;

  private constructor(servers: PrivateServers, platform: TestPlatform, report: (step: string) => void) {
    this.servers = servers;
    this.platform = platform;
    this.#report = report;
  }

  /** A cluster of which only the servers run; whoever opened it has to `stop()` it, even if `start()` fails. */
  static async open({ dist, report }: ClusterOptions): Promise<Cluster> {
    const servers = await PrivateServers.open(
      { dist, ...(dist === 'dist' ? {} : { projectRoots: [] }) },
      report,
    );
    return new Cluster(servers, await servers.createPlatform(), report);
  }

  async start(): Promise<void> {
    const { platform } = this;
    await Promise.all(SERVICE_NAMES.map((name) => platform.migrate(name)));
    this.#report('databases are migrated');
    await platform.startNeighbours();
    await this.#openNetwork();
    await Promise.all(this.replicas.map(({ program }) => program.start()));
    this.#report(`${this.replicas.length} replicas are ready`);
  }

  replica(name: ReplicaName): Replica {
    const found = this.replicas.find(({ label }) => label === labelOf(name));
    if (found === undefined) throw new Error(`no replica ${labelOf(name)}`);
    return found;
  }

  /** Has processes stand still. Gives how many there were. */
  freeze(pids: readonly number[]): number {
    const stopped = pids.filter((pid) => trySignal(pid, 'SIGSTOP'));
    for (const pid of stopped) this.#frozen.add(pid);
    return stopped.length;
  }

  /** Has whatever stands still go on. */
  thaw(): void {
    for (const pid of this.#frozen) trySignal(pid, 'SIGCONT');
    this.#frozen.clear();
  }

  /** Ends everything. Nobody may be left standing still: a stopped process hears of nothing. */
  async stop(): Promise<void> {
    this.thaw();
    await this.network.close();
    await this.servers.close();
  }

  async #openNetwork(): Promise<void> {
    const { ports } = this.platform.settings;
    const { postgresql, rabbitmq } = this.servers;
    await this.network.openProxies({
      database: postgresql.port,
      broker: rabbitmq.ports.amqp,
      auth: ports.auth,
    });
    const own = await findFreePorts(2 * REPLICA_NAMES.length);
    for (const [index, name] of REPLICA_NAMES.entries()) {
      const [port = 0, metricsPort = 0] = own.slice(2 * index);
      const label = labelOf(name);
      const variables = this.#variables(name, port, metricsPort);
      this.replicas.push({
        name,
        label,
        program: this.platform.makeService(name.service, { name: label, variables }),
      });
    }
    for (const service of SERVICE_NAMES) {
      const endpoints = this.replicas.filter(({ name }) => name.service === service);
      await this.network.openBalancer(
        service,
        ports[service],
        endpoints.map(({ program }) => program),
      );
    }
  }

  /** Its own ports, and its own proxies to the servers. */
  #variables(name: ReplicaName, port: number, metricsPort: number): Variables {
    const { settings } = this.platform;
    const through = (dependency: 'database' | 'broker' | 'auth', url: string): string =>
      throughPort(url, this.network.proxy(name, dependency).port);
    return {
      PORT: String(port),
      METRICS_PORT: String(metricsPort),
      SHUTDOWN_GRACE_MS: String(SHUTDOWN_GRACE_MS),
      DATABASE_URL: through('database', settings.databases[name.service].app),
      ...(name.service === 'auth'
        ? {}
        : { AUTH_SERVICE_URL: new URL(through('auth', this.platform.url('auth'))).origin }),
      ...(name.service === 'task'
        ? {
            RABBITMQ_MAIN_URL: through('broker', settings.mainBusUrl),
            RABBITMQ_SCHEDULING_URL: through('broker', settings.schedulingBusUrl),
            REQUEST_TIMEOUT_MS: String(REQUEST_TIMEOUT_MS),
          }
        : {}),
    };
  }
}

function labelOf({ service, letter }: ReplicaName): string {
  return `${service}-${letter}`;
}
