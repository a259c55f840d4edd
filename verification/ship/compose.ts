import { readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parse } from 'yaml';
import { readEnvironmentFile, substitute } from '#manifests/environment.ts';
import { FriendlyError } from '#platform/errors.ts';
import type { Variables } from '#platform/state-folder.ts';
import { eventually } from '#platform/waiting.ts';
import type { ContainerSpec, Engine } from './engine.ts';
import { imageOf } from './images.ts';

type Condition = 'service_started' | 'service_healthy' | 'service_completed_successfully';

/** The members of a compose service that this tool supports. */
interface ComposeService {
  readonly image?: string;
  readonly build?: { readonly args: { readonly APP?: string } };
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string | number>>;
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
  readonly tmpfs?: readonly string[];
  readonly cap_drop?: readonly string[];
  readonly security_opt?: readonly string[];
  readonly read_only?: boolean;
  readonly network_mode?: string;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly depends_on?: readonly string[] | Readonly<Record<string, { readonly condition: Condition }>>;
}

const HEALTHY_TIMEOUT_MS = 120_000;
const SHUTDOWN_SECONDS = 45;

/**
 * Runs the containers of a compose file with an engine alone, without docker compose. The built images must
 * already exist under the tag of this run.
 */
export class Compose {
  readonly #engine: Engine;
  readonly #file: string;
  readonly #services: Readonly<Record<string, ComposeService>>;
  readonly variables: Readonly<Record<string, string>>;
  readonly #addresses = new Map<string, string>();
  readonly #running: string[] = [];

  constructor(engine: Engine, file: string, environmentFile: string) {
    this.#engine = engine;
    this.#file = file;
    const document = parse(readFileSync(file, 'utf8'), { merge: true }) as {
      services: Record<string, ComposeService>;
    };
    this.#services = document.services;
    this.variables = readEnvironmentFile(readFileSync(environmentFile, 'utf8'));
  }

  /** Images from registries, by service. */
  get foreignImages(): [name: string, image: string][] {
    return Object.entries(this.#services).flatMap(([name, { image }]) =>
      image === undefined ? [] : [[name, image]],
    );
  }

  /** Ports of this machine that the containers publish. */
  get ports(): number[] {
    return Object.values(this.#services).flatMap(({ ports = [] }) =>
      ports.map((port) => Number(port.split(':').at(-2))),
    );
  }

  /**
   * Starts all containers in the order of their dependencies.
   * @param absent services not to start, with the address of their substitute. Null: there is no substitute.
   */
  async up(
    tag: string,
    absent: ReadonlyMap<string, string | null>,
    report: (line: string) => void,
  ): Promise<void> {
    const hosts: Record<string, string> = {};
    for (const name of Object.keys(this.#services)) {
      const address = absent.has(name) ? absent.get(name) : this.#engine.nextAddress();
      if (address === null || address === undefined) continue;
      this.#addresses.set(name, address);
      hosts[name] = address;
    }
    for (const name of this.#order()) {
      if (absent.has(name)) continue;
      await this.#waitForOthers(name, absent);
      await this.#start(name, tag, hosts);
      report(`${name} has started`);
    }
    for (const name of this.#running) await this.#untilHealthy(name);
  }

  /**
   * Stops all containers in reverse order.
   * @throws {FriendlyError} if one of our images did not exit with 0
   */
  async down(): Promise<void> {
    const failures: string[] = [];
    for (const name of this.#running.splice(0).reverse()) {
      const exitCode = await this.#engine.stop(this.#engine.container(name), SHUTDOWN_SECONDS);
      if (exitCode !== 0 && this.#services[name]?.build !== undefined)
        failures.push(`${name} ended with ${exitCode}`);
    }
    if (failures.length > 0) throw new FriendlyError(failures.join(', '));
  }

  /** Service names, each after its dependencies. */
  #order(): string[] {
    const order: string[] = [];
    const visit = (name: string): void => {
      if (order.includes(name)) return;
      for (const [other] of this.#dependencies(name)) visit(other);
      order.push(name);
    };
    for (const name of Object.keys(this.#services)) visit(name);
    return order;
  }

  #dependencies(name: string): [string, Condition][] {
    const { depends_on: others = {} } = this.#service(name);
    if (Array.isArray(others)) return (others as string[]).map((other) => [other, 'service_started']);
    return Object.entries(others as Record<string, { condition: Condition }>).map(
      ([other, { condition }]) => [other, condition],
    );
  }

  async #waitForOthers(name: string, absent: ReadonlyMap<string, unknown>): Promise<void> {
    for (const [other, condition] of this.#dependencies(name)) {
      if (condition === 'service_healthy' && !absent.has(other)) await this.#untilHealthy(other);
    }
  }

  /** Starts a container. If another service waits for its completion, runs it to its end instead. */
  async #start(name: string, tag: string, hosts: Variables): Promise<void> {
    const all = Object.keys(this.#services).flatMap((other) => this.#dependencies(other));
    const endsByItself = all.some(
      ([other, condition]) => other === name && condition === 'service_completed_successfully',
    );
    const spec = this.specOf(name, tag);
    if (endsByItself) {
      await this.#engine.runToEnd(spec, hosts);
      await this.#engine.remove([this.#engine.container(name)]);
      return;
    }
    await this.#engine.start(spec, hosts);
    this.#running.push(name);
  }

  specOf(name: string, tag: string): ContainerSpec {
    const service = this.#service(name);
    const shared = /^service:(.+)$/.exec(service.network_mode ?? '')?.[1];
    const folder = dirname(this.#file);
    return {
      name,
      image: service.image ?? imageOf(service.build?.args.APP ?? 'neighbours', tag),
      command: service.command ?? null,
      environment: Object.fromEntries(
        Object.entries(service.environment ?? {}).map(([key, value]) => [
          key,
          substitute(String(value), this.variables),
        ]),
      ),
      network: shared === undefined ? { ip: this.#addresses.get(name) ?? '' } : { container: shared },
      isReadOnly: service.read_only ?? false,
      droppedCapabilities: service.cap_drop ?? [],
      mayGainPrivileges: !(service.security_opt ?? []).includes('no-new-privileges:true'),
      ports: service.ports ?? [],
      tmpfs: service.tmpfs ?? [],
      volumes: (service.volumes ?? []).map((volume) =>
        volume.startsWith('.') ? join(resolve(folder), volume) : volume.replace(/^[^:]+:/, ''),
      ),
    };
  }

  async #untilHealthy(name: string): Promise<void> {
    const [kind, ...test] = this.#service(name).healthcheck?.test ?? [];
    if (kind === undefined) return;
    const container = this.#engine.container(name);
    const command = kind === 'CMD-SHELL' ? ['sh', '-c', ...test] : test;
    await eventually(() => this.#engine.call(['exec', container, ...command]), {
      timeoutMs: HEALTHY_TIMEOUT_MS,
      intervalMs: 500,
    }).catch(async (cause: unknown) => {
      const log = await this.#engine.logs(container).catch(String);
      throw new FriendlyError(`${name} did not become healthy: ${log.slice(-1_000)}`, { cause });
    });
  }

  #service(name: string): ComposeService {
    const found = this.#services[name];
    if (found === undefined) throw new FriendlyError(`${this.#file} has no service ${name}.`);
    return found;
  }
}
