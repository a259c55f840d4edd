import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { FriendlyError } from '#platform/errors.ts';
import { type Variables, WORKSPACE } from '#platform/state-folder.ts';

/** A container, as specified by the compose file or a pod. */
export interface ContainerSpec {
  /** Unique within a run. */
  readonly name: string;
  readonly image: string;
  /** Null: the command of the image. */
  readonly command: readonly string[] | null;
  readonly environment: Variables;
  /** Its address, or another container whose network it shares. */
  readonly network: { readonly ip: string } | { readonly container: string };
  readonly isReadOnly?: boolean;
  readonly droppedCapabilities?: readonly string[];
  /** False: set-user-id programs and file capabilities have no effect. */
  readonly mayGainPrivileges?: boolean;
  readonly user?: string;
  readonly memoryBytes?: number;
  readonly cpus?: string;
  readonly ports?: readonly string[];
  readonly tmpfs?: readonly string[];
  readonly volumes?: readonly string[];
}

/** The flags of `podman run` and `docker run`, except those for name, network and environment. */
export function runFlags(spec: ContainerSpec): string[] {
  const { droppedCapabilities = [], ports = [], tmpfs = [], volumes = [] } = spec;
  return [
    ...(spec.isReadOnly === true ? ['--read-only'] : []),
    // Unlike Kubernetes, podman mounts some writable folders into a read-only root.
    ...droppedCapabilities.flatMap((name) => ['--cap-drop', name]),
    ...(spec.mayGainPrivileges === false ? ['--security-opt', 'no-new-privileges'] : []),
    ...(spec.user === undefined ? [] : ['--user', spec.user]),
    ...(spec.memoryBytes === undefined ? [] : ['--memory', `${spec.memoryBytes}b`]),
    ...(spec.cpus === undefined ? [] : ['--cpus', spec.cpus]),
    ...ports.flatMap((port) => ['--publish', port]),
    ...tmpfs.flatMap((mount) => ['--tmpfs', mount]),
    ...volumes.flatMap((volume) => ['--volume', volume]),
  ];
}

export const ENGINE_NAMES = ['podman', 'docker'] as const;
export type EngineName = (typeof ENGINE_NAMES)[number];

interface CallOptions {
  readonly timeoutMs?: number;
  readonly variables?: Variables;
}

const run = promisify(execFile);
/** Folder for the logs of ended containers. */
const LOGS = join(WORKSPACE, 'test-results/ship');
const COMMAND_TIMEOUT_MS = 60_000;
const PULL_TIMEOUT_MS = 600_000;
/** Maximum length of an engine's output in an error message. */
const SHOWN_CHARACTERS = 1_500;
const SUBNETS = [7, 57, 107, 157, 207];
/**
 * Containers get addresses whose last part is above this number. Lower addresses belong to the gateway and
 * the Services.
 */
const FIRST_ADDRESS = 20;

/** Podman or Docker, with a network for this run and its containers. */
export class Engine {
  readonly name: EngineName;
  readonly #environment: NodeJS.ProcessEnv;
  readonly #network = `ship-${process.pid}`;
  readonly #containers = new Set<string>();
  readonly #endedLogs = new Map<string, string>();
  #subnet = '';
  #interface = '';
  #lastAddress = FIRST_ADDRESS;

  private constructor(name: EngineName, folder: string) {
    this.name = name;
    const isConfigured = name !== 'podman' || process.env['CONTAINERS_CONF'] !== undefined;
    this.#environment = isConfigured
      ? process.env
      : { ...process.env, CONTAINERS_CONF: writeConfiguration(folder) };
  }

  /** Returns the first working engine. @throws {FriendlyError} with the errors of all, if none works */
  static async find(names: readonly EngineName[], folder: string): Promise<Engine> {
    const reasons: string[] = [];
    for (const name of names) {
      const engine = new Engine(name, folder);
      try {
        await engine.call(['info']);
        return engine;
      } catch (error) {
        reasons.push((error as Error).message);
      }
    }
    throw new FriendlyError(`Containers cannot run here.\n${reasons.join('\n')}`);
  }

  /**
   * Runs a command of the engine and returns its output.
   * @throws {FriendlyError} with the end of the output
   */
  async call(args: readonly string[], options: CallOptions = {}): Promise<string> {
    const { timeoutMs = COMMAND_TIMEOUT_MS, variables = {} } = options;
    try {
      const env = { ...this.#environment, ...variables };
      const { stdout } = await run(this.name, args, { env, timeout: timeoutMs, maxBuffer: 64 * 2 ** 20 });
      return stdout;
    } catch (cause) {
      const { message, stderr = '', stdout = '' } = cause as Error & { stderr?: string; stdout?: string };
      const output = `${stdout}${stderr}`.trim() || message;
      throw new FriendlyError(
        `${this.name} ${args.slice(0, 2).join(' ')}: ${output.slice(-SHOWN_CHARACTERS)}`,
        { cause },
      );
    }
  }

  succeeds(args: readonly string[], options: CallOptions = {}): Promise<boolean> {
    return this.call(args, options).then(
      () => true,
      () => false,
    );
  }

  /** Returns whether the engine has an image. Fetches the image if it is missing. */
  async hasImage(image: string): Promise<boolean> {
    if (await this.succeeds(['image', 'inspect', image])) return true;
    // Short names in compose files mean Docker Hub. Podman may have no default registry.
    const name = image.includes('/') ? image : `library/${image}`;
    const full = /^[^/]*[.:][^/]*\//.test(image) ? image : `docker.io/${name}`;
    return (
      (await this.succeeds(['pull', full], { timeoutMs: PULL_TIMEOUT_MS })) &&
      this.succeeds(['tag', full, image])
    );
  }

  /** Creates the network and checks that a container can run in it. @throws {FriendlyError} if that fails */
  async open(image: string): Promise<void> {
    const refusals: string[] = [];
    for (const third of SUBNETS) {
      this.#subnet = `10.89.${third}`;
      const isCreated = await this.call([
        'network',
        'create',
        '--subnet',
        `${this.#subnet}.0/24`,
        this.#network,
      ]).then(
        () => true,
        (error: Error) => {
          refusals.push(error.message);
          return false;
        },
      );
      if (isCreated) break;
      this.#subnet = '';
    }
    if (this.#subnet === '') throw new FriendlyError(`Containers cannot run here.\n${refusals.join('\n')}`);
    // This container runs until the end, because the network's interface exists only while a container uses
    // it.
    const anchor = this.specOf('anchor', image, ['node', '--eval', 'setInterval(() => undefined, 1e9)']);
    try {
      await this.start(anchor);
      await this.call(['exec', this.container('anchor'), 'node', '--version']);
      this.#interface = await this.#findInterface();
      // By default a bridge has the lowest MAC address of its ports, which changes when containers start or
      // stop. Cached ARP entries become wrong, and packets are lost for seconds. An explicit MAC address does
      // not change.
      await run('ip', ['link', 'set', 'dev', this.#interface, 'address', '02:00:0a:59:00:01']);
    } catch (cause) {
      throw new FriendlyError(`Containers cannot run here.\n${(cause as Error).message}`, { cause });
    }
  }

  /** Adds an address of the network to this machine. */
  async addAddress(last: number): Promise<string> {
    const address = this.address(last);
    await run('ip', ['address', 'replace', `${address}/24`, 'dev', this.#interface]);
    return address;
  }

  /** An address in the network. Low numbers belong to this machine and the Services. */
  address(last: number): string {
    return `${this.#subnet}.${last}`;
  }

  nextAddress(): string {
    this.#lastAddress += 1;
    return this.address(this.#lastAddress);
  }

  /** The specification of a container with default settings. */
  specOf(name: string, image: string, command: readonly string[]): ContainerSpec {
    return { name, image, command, environment: {}, network: { ip: this.nextAddress() } };
  }

  async start(spec: ContainerSpec, hosts: Variables = {}): Promise<void> {
    await this.#run(spec, hosts, ['--detach']);
  }

  /** Runs a container to its end and returns its output. @throws {FriendlyError} if it fails */
  runToEnd(spec: ContainerSpec, hosts: Variables = {}): Promise<string> {
    return this.#run(spec, hosts, []);
  }

  /**
   * Stops a container like Kubernetes: SIGTERM, then SIGKILL after the grace period. Removes it. Returns its
   * exit code.
   */
  async stop(name: string, graceSeconds: number): Promise<number> {
    await this.call(['stop', '--time', String(graceSeconds), name], {
      timeoutMs: COMMAND_TIMEOUT_MS + graceSeconds * 1_000,
    });
    await this.#keepLog(name);
    const exitCode = Number(await this.call(['inspect', '--format', '{{.State.ExitCode}}', name]));
    await this.call(['rm', '--force', name]);
    this.#containers.delete(name);
    return exitCode;
  }

  /** The logs of ended containers, by name. */
  get endedLogs(): ReadonlyMap<string, string> {
    return this.#endedLogs;
  }

  logs(name: string): Promise<string> {
    return this.call(['logs', name]);
  }

  /** Removes containers of this run. */
  async remove(names: readonly string[]): Promise<void> {
    for (const name of names) {
      if (await this.succeeds(['container', 'inspect', name])) await this.#keepLog(name);
      await this.succeeds(['rm', '--force', '--volumes', name]);
      this.#containers.delete(name);
    }
  }

  /** Removes all containers and the network. */
  async close(): Promise<void> {
    for (const name of [...this.#containers].reverse())
      await this.succeeds(['rm', '--force', '--volumes', name]);
    if (this.#subnet !== '') await this.succeeds(['network', 'rm', this.#network]);
  }

  container(name: string): string {
    return `${this.#network}-${name}`;
  }

  async #keepLog(name: string): Promise<void> {
    const log = await this.logs(name);
    mkdirSync(LOGS, { recursive: true });
    writeFileSync(join(LOGS, `${name}.log`), log);
    this.#endedLogs.set(name, log);
  }

  async #findInterface(): Promise<string> {
    const [network] = JSON.parse(await this.call(['network', 'inspect', this.#network])) as {
      network_interface?: string;
      Id?: string;
    }[];
    return network?.network_interface ?? `br-${(network?.Id ?? '').slice(0, 12)}`;
  }

  async #run(spec: ContainerSpec, hosts: Variables, flags: readonly string[]): Promise<string> {
    const { name, image, command, environment } = spec;
    this.#containers.add(this.container(name));
    const network =
      'ip' in spec.network
        ? [
            '--network',
            this.#network,
            '--ip',
            spec.network.ip,
            ...Object.entries(hosts).flatMap(([host, ip]) => ['--add-host', `${host}:${ip}`]),
          ]
        : ['--network', `container:${this.container(spec.network.container)}`];
    // Pass values through the environment: arguments are visible to every user of the machine.
    const names = Object.keys(environment).flatMap((variable) => ['--env', variable]);
    const args = ['run', '--name', this.container(name), ...flags, ...network, ...names, ...runFlags(spec)];
    return this.call([...args, image, ...(command ?? [])], {
      variables: environment,
      timeoutMs: 5 * COMMAND_TIMEOUT_MS,
    });
  }
}

/**
 * Writes a configuration for podman with lower limits, because systems without privileges refuse podman's
 * default limits.
 */
function writeConfiguration(folder: string): string {
  const file = join(folder, 'containers.conf');
  const netavark = existsSync('/usr/lib/podman/netavark') ? '[network]\nnetwork_backend = "netavark"\n' : '';
  const limits = '["nofile=1024:1024", "nproc=4096:4096"]';
  writeFileSync(file, `[containers]\ndefault_ulimits = ${limits}\n${netavark}`);
  return file;
}
