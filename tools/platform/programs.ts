import { readFileSync } from 'node:fs';
import type { PortName } from './ports.ts';
import { COMPILE_CACHE, WORKSPACE } from './state-folder.ts';
import { type ProcessSpec, type SupervisedProcess, type Supervisor, waitUntilReady } from './supervisor.ts';
import { respondsOk } from './waiting.ts';

/** A program of the platform, which `npm start` builds, starts and waits for. */
export interface Deployable {
  /** Name of its process, log file and progress line. */
  readonly name: string;
  /** Bundle in dist/. */
  readonly bundle: string;
  readonly port: PortName;
}

export interface Service extends Deployable {
  readonly service: ServiceName;
  readonly migrate: string;
  readonly metricsPort: PortName;
}

export type ServiceName = 'auth' | 'settings' | 'task';

/** Project folders to bundle with `tools/build/bundle.ts`. */
export const PROJECT_ROOTS = [
  'apps/auth-service',
  'apps/settings-service',
  'apps/task-service',
  'tools/neighbours',
];

function service(name: ServiceName): Service {
  return {
    service: name,
    name: `${name}-service`,
    bundle: `dist/apps/${name}-service/main.js`,
    migrate: `dist/apps/${name}-service/migrate.js`,
    port: name,
    metricsPort: `${name}-metrics`,
  };
}

export const SERVICE_NAMES = ['auth', 'settings', 'task'] as const satisfies readonly ServiceName[];
export const SERVICES: readonly Service[] = SERVICE_NAMES.map(service);

/** Program that loads the development identities (ivy, carl and others) into the auth service's database. */
export const LOAD_IDENTITIES = 'dist/apps/auth-service/load-development-identities.js';

export const NEIGHBOURS: readonly Deployable[] = [
  { name: 'customers', bundle: 'dist/tools/neighbours/customers.js', port: 'customers' },
  { name: 'scheduling', bundle: 'dist/tools/neighbours/scheduling.js', port: 'scheduling' },
  {
    name: 'completion-receiver',
    bundle: 'dist/tools/neighbours/completion-receiver.js',
    port: 'completions',
  },
  { name: 'identity-provider', bundle: 'dist/tools/neighbours/identity-provider.js', port: 'openid' },
];

export function serviceOf(name: ServiceName): Service {
  const found = SERVICES.find(({ service }) => service === name);
  if (found === undefined) throw new RangeError(`there is no service ${name}`);
  return found;
}

/** Stages in which processes stop, the highest first. 0 is PostgreSQL and epmd, 1 is RabbitMQ. */
export const NEIGHBOUR_STAGE = 2;
const SERVICE_STAGE = 3;
const READY_TIMEOUT_MS = 100_000;
/** Time in ms that a service has to stop before SIGKILL; its own limit SHUTDOWN_TIMEOUT_MS is 25 s. */
const GRACE_MS = 30_000;

export interface ProgramSpec {
  readonly name: string;
  /** Options of Node, the program, and its arguments. */
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly port: number;
  /** Path that responds 200 when the program is ready. */
  readonly readyPath?: string;
  readonly stage?: number;
}

/** A program of the platform with its port and environment. Its process can be ended and started again. */
export class Program {
  readonly name: string;
  readonly port: number;
  readonly url: string;
  /** Log files, one for each process so far. */
  readonly logFiles: string[] = [];
  /** Time in ms from the start of the last process to its first response that it is ready. */
  readyAfterMs = 0;
  readonly #supervisor: Supervisor;
  #spec: ProgramSpec;
  #process: SupervisedProcess | null = null;
  #startedAtMs = 0;

  constructor(supervisor: Supervisor, spec: ProgramSpec) {
    this.#supervisor = supervisor;
    this.#spec = spec;
    this.name = spec.name;
    this.port = spec.port;
    this.url = `http://127.0.0.1:${spec.port}`;
  }

  /** Starts a process and waits until it is ready. @param intervalMs between two checks */
  async start(intervalMs?: number): Promise<this> {
    await this.spawn();
    await this.untilReady(intervalMs);
    return this;
  }

  /** Sets further variables for the processes that start from now on. */
  setVariables(variables: NodeJS.ProcessEnv): void {
    this.#spec = { ...this.#spec, env: { ...this.#spec.env, ...variables } };
  }

  async spawn(): Promise<void> {
    const { name, args, env, stage = SERVICE_STAGE } = this.#spec;
    const generation = this.logFiles.length + 1;
    this.#startedAtMs = performance.now();
    const spec = nodeProcess(generation === 1 ? name : `${name}-${generation}`, args, env);
    this.#process = await this.#supervisor.spawn({ ...spec, stage });
    this.logFiles.push(this.#process.logFile);
  }

  async untilReady(intervalMs?: number): Promise<void> {
    await waitUntilReady(this.process, () => this.isReady(), READY_TIMEOUT_MS, intervalMs);
    this.readyAfterMs = performance.now() - this.#startedAtMs;
  }

  isReady(): Promise<boolean> {
    return respondsOk(`${this.url}${this.#spec.readyPath ?? '/health/ready'}`)();
  }

  get process(): SupervisedProcess {
    if (this.#process === null) throw new Error(`${this.name} was never started`);
    return this.#process;
  }

  get pid(): number {
    return this.process.pid;
  }

  hasEnded(): boolean {
    return this.process.hasEnded();
  }

  signal(signal: NodeJS.Signals): void {
    process.kill(this.pid, signal);
  }

  /** Waits for the end. Returns the exit code; null if a signal ended the process. */
  async exited(): Promise<number | null> {
    await this.process.ended;
    return this.process.exitCode();
  }

  /** Ends the process if it still runs, and returns its exit code. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
    if (!this.hasEnded()) this.signal(signal);
    return this.exited();
  }

  log(): string {
    return this.logFiles.map((file) => readFileSync(file, 'utf8')).join('');
  }
}

export function nodeProcess(name: string, args: readonly string[], env: NodeJS.ProcessEnv): ProcessSpec {
  return {
    name,
    stage: SERVICE_STAGE,
    command: process.execPath,
    args,
    env: { NODE_COMPILE_CACHE: COMPILE_CACHE, ...env },
    cwd: WORKSPACE,
    graceMs: GRACE_MS,
  };
}

/** Bundles projects into `dist`. @throws {FriendlyError} with the end of the bundler's output */
export function build(
  supervisor: Supervisor,
  projectRoots: readonly string[] = PROJECT_ROOTS,
): Promise<void> {
  return supervisor.run(nodeProcess('build', ['tools/build/bundle.ts', ...projectRoots], process.env));
}
