import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestBroker, createTestDatabase, findFreePorts, runProcess } from '@platform/testing';
import type { BrokerAddresses, RunningProcess, TestBroker, TestDatabase } from '@platform/testing';
import {
  NEIGHBOUR_NAMES,
  SERVICE_NAMES,
  localUrl,
  makeSecrets,
  neighbourVariables,
  ownerVariables,
  serviceVariables,
  tourVariables,
} from './environments';
import type { NeighbourName, PlatformFacts, ProgramName, ServiceName, Variables } from './environments';

const WORKSPACE = join(__dirname, '../../..');
/** Seven processes begin at once, on a machine that may be busy. */
const READY_TIMEOUT_MS = 75_000;

/** One running process of a platform. */
export interface Replica extends RunningProcess {
  url: string;
}

/** What a tour came to. */
export interface TourResult {
  exitCode: number | null;
  output: string;
}

/** A whole platform of built deployables, each a process of its own, with its own databases and virtual hosts. */
export class Platform {
  private readonly replicas: Replica[] = [];
  private readonly programs: { name: string; running: RunningProcess }[] = [];

  private constructor(
    readonly facts: PlatformFacts,
    private readonly variables: Variables,
    private readonly buses: readonly TestBroker[],
    private readonly databases: readonly TestDatabase[],
  ) {}

  /** Migrates, loads the development identities and starts one process of everything.
   *  @param variablesFor what every program gets over what it would get
   *  @param broker where the buses are, instead of the broker that all suites share */
  static async start(
    variablesFor: (facts: PlatformFacts) => Promise<Variables> = () => Promise.resolve({}),
    broker?: BrokerAddresses,
  ): Promise<Platform> {
    const buses = [await createTestBroker(broker), await createTestBroker(broker)] as const;
    const databases = await Promise.all(
      SERVICE_NAMES.map(() => createTestDatabase({ migrate: () => Promise.resolve() })),
    );
    const facts = await gatherFacts(buses, databases);
    const platform = new Platform(facts, await variablesFor(facts), buses, databases);
    try {
      await platform.prepareDatabases();
      await platform.startEverything();
      return platform;
    } catch (error) {
      await platform.stop('SIGKILL');
      throw error;
    }
  }

  /** Address of a program's first process. */
  url(name: ProgramName): string {
    return localUrl(this.facts.ports[name]);
  }

  /** The database of a service, as its administrator sees it. */
  database(name: ServiceName): TestDatabase {
    return this.databases[SERVICE_NAMES.indexOf(name)] as TestDatabase;
  }

  /** The virtual host of a bus, as its administrator sees it. */
  bus(name: 'main' | 'scheduling'): TestBroker {
    return this.buses[name === 'main' ? 0 : 1] as TestBroker;
  }

  /** Starts another process of a service on free ports and waits until it is ready. */
  async addReplica(name: ServiceName, overrides: Variables = {}): Promise<Replica> {
    const [port, metricsPort] = (await findFreePorts(2)) as [number, number];
    return this.startService(name, port, metricsPort, overrides);
  }

  /** The process that answers at `url`. */
  replicaAt(url: string): Replica {
    const replica = this.replicas.find((running) => running.url === url);
    if (replica === undefined) throw new Error(`nothing of this platform runs at ${url}`);
    return replica;
  }

  /** What every program of this platform has written so far, ended ones and migrations included. */
  logs(): ReadonlyMap<string, string> {
    return new Map(
      this.programs.map(({ name, running }, index) => [`${name} (${String(index)})`, running.output()]),
    );
  }

  /** Bodies of what lies in error and skipped queues: messages that somebody could not make sense of. */
  async rejectedMessages(): Promise<string[]> {
    const rejected: string[] = [];
    for (const { management } of this.buses) {
      for (const queue of await management.queues())
        if (/_(error|skipped)$/.test(queue))
          for (const { body } of await management.get(queue, 10)) rejected.push(`${queue}: ${body}`);
    }
    return rejected;
  }

  /** Walks the tour against this platform. */
  async tour(overrides: Variables = {}): Promise<TourResult> {
    const walking = await runProcess({
      entry: join(WORKSPACE, 'tools/tour/main.ts'),
      env: { ...tourVariables(this.facts), ...overrides },
    });
    return { exitCode: await walking.exited, output: walking.output() };
  }

  /** Ends every process that still runs, and gives their exit codes by address; then takes databases and broker away. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Map<string, number | null>> {
    const exits = await Promise.all(
      this.replicas.map(async (replica) => [replica.url, await replica.stop(signal)] as const),
    );
    await Promise.all(this.databases.map((database) => database.drop()));
    await Promise.all(this.buses.map((bus) => bus.drop()));
    await rm(this.facts.stateDirectory, { recursive: true, force: true });
    return new Map(exits);
  }

  private async prepareDatabases(): Promise<void> {
    await Promise.all(
      SERVICE_NAMES.map((name) =>
        this.runToEnd(`dist/apps/${name}-service/migrate.js`, ownerVariables(name, this.facts)),
      ),
    );
    await this.runToEnd(
      'dist/apps/auth-service/load-development-identities.js',
      ownerVariables('auth', this.facts),
    );
  }

  private async startEverything(): Promise<void> {
    const { ports, metricsPorts } = this.facts;
    await Promise.all([
      ...NEIGHBOUR_NAMES.map((name) => this.startNeighbour(name)),
      ...SERVICE_NAMES.map((name) => this.startService(name, ports[name], metricsPorts[name])),
    ]);
  }

  private startService(
    name: ServiceName,
    port: number,
    metricsPort: number,
    overrides: Variables = {},
  ): Promise<Replica> {
    const variables = { ...serviceVariables(name, this.facts, { port, metricsPort }), ...overrides };
    return this.startProgram(`dist/apps/${name}-service/main.js`, port, variables);
  }

  private startNeighbour(name: NeighbourName): Promise<Replica> {
    const variables = neighbourVariables(name, this.facts);
    return this.startProgram(`dist/tools/neighbours/${name}.js`, this.facts.ports[name], variables);
  }

  private async startProgram(entry: string, port: number, env: Variables): Promise<Replica> {
    const url = localUrl(port);
    const running = await runProcess({
      entry: join(WORKSPACE, entry),
      nodeOptions: ['--enable-source-maps'],
      env: { ...env, ...this.variables },
      readyUrl: `${url}/health/ready`,
      timeoutMs: READY_TIMEOUT_MS,
    });
    this.programs.push({ name: entry, running });
    const replica = { ...running, url };
    this.replicas.push(replica);
    return replica;
  }

  private async runToEnd(entry: string, env: Variables): Promise<void> {
    const path = join(WORKSPACE, entry);
    if (!existsSync(path))
      throw new Error(`${entry} is missing: nx run-many -t build builds the deployables`);
    const running = await runProcess({ entry: path, env: { ...env, ...this.variables } });
    this.programs.push({ name: entry, running });
    const exitCode = await running.exited;
    if (exitCode !== 0) throw new Error(`${entry} ended with ${String(exitCode)}:\n${running.output()}`);
  }
}

async function gatherFacts(
  [main, scheduling]: readonly [TestBroker, TestBroker],
  databases: readonly TestDatabase[],
): Promise<PlatformFacts> {
  const names: readonly ProgramName[] = [...SERVICE_NAMES, ...NEIGHBOUR_NAMES];
  const ports = await findFreePorts(names.length + SERVICE_NAMES.length);
  const connections = await Promise.all(
    databases.map(async (database) => ({
      url: (await database.createRole()).url,
      ownerUrl: database.ownerUrl,
    })),
  );
  return {
    ports: byName(names, ports),
    metricsPorts: byName(SERVICE_NAMES, ports.slice(names.length)),
    databases: byName(SERVICE_NAMES, connections),
    mainBusUrl: main.url,
    schedulingBusUrl: scheduling.url,
    stateDirectory: await mkdtemp(join(tmpdir(), 'platform-e2e-')),
    secrets: makeSecrets(),
  };
}

function byName<N extends string, T>(names: readonly N[], values: readonly T[]): Record<N, T> {
  return Object.fromEntries(names.map((name, index) => [name, values[index]])) as Record<N, T>;
}
