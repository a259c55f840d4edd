import { join } from 'node:path';
import { render } from '#manifests/renderings.ts';
import { FriendlyError } from '#platform/errors.ts';
import { SERVICES } from '#platform/programs.ts';
import { WORKSPACE } from '#platform/state-folder.ts';
import { TcpProxy } from '#platform/tcp-proxy.ts';
import { respondsOk, eventually } from '#platform/waiting.ts';
import type { Application } from '#verification/traffic/context.ts';
import type { PlatformUnderLoad } from '#verification/traffic/platform.ts';
import type { Compose } from './compose.ts';
import type { Engine } from './engine.ts';
import { PRESENT } from './images.ts';
import { Namespace, type Release } from './namespace.ts';
import { secretsOf, type Servers, type Stage } from './servers.ts';

const FIRST_SERVICE_ADDRESS = 2;
/** Neighbours by their names in the compose file, with their names in loads and audits. */
const NEIGHBOURS = {
  customers: 'customers',
  scheduling: 'scheduling',
  'completion-receiver': 'completions',
} as const;
const NEIGHBOUR_PORT = 8080;
const READY_TIMEOUT_MS = 60_000;

/** Renders the manifests of an overlay. */
export function readRelease(workspace: string, overlay: string, tag: string): Release {
  return {
    tag,
    database: render(workspace, join('k8s/overlays', overlay, 'database')),
    services: render(workspace, join('k8s/overlays', overlay)),
  };
}

/** An overlay that runs in an emulated namespace, with its neighbours. */
export class Overlay {
  readonly namespace: Namespace;
  readonly stage: Stage;
  readonly secrets: Map<string, string>;
  readonly platform: PlatformUnderLoad;
  readonly #engine: Engine;
  readonly #proxies: TcpProxy[] = [];
  readonly #neighbours = new Map<string, string>();
  #address = FIRST_SERVICE_ADDRESS;

  constructor(engine: Engine, servers: Servers, stage: Stage) {
    this.#engine = engine;
    this.stage = stage;
    this.platform = servers.platform(stage, (name) => this.url(name));
    // Only the production overlay declares its secrets. In the other overlays the same secrets are created by
    // hand.
    const prepared = render(WORKSPACE, 'k8s/overlays/production/prepare');
    this.secrets = secretsOf(prepared, stage);
    this.namespace = new Namespace(engine, this.secrets);
  }

  /** The URL of a Service or a neighbour. */
  url(name: Parameters<PlatformUnderLoad['url']>[0]): string {
    return this.#neighbours.get(name) ?? `http://${this.namespace.hosts[`${name}-service`] ?? ''}`;
  }

  /** The current secrets of the pods, by name. No log may contain them. */
  knownSecrets(): Map<string, string> {
    const found = new Map(this.secrets);
    for (const [name, value] of this.secrets)
      if (URL.canParse(value)) found.set(`password in ${name}`, decodeURIComponent(new URL(value).password));
    return found;
  }

  /** Opens the Services, and starts the neighbours with their configuration in the compose file. */
  async prepare(release: Release, compose: Compose): Promise<void> {
    await this.namespace.openServices(release, () => this.#addAddress());
    for (const [name, called] of Object.entries(NEIGHBOURS)) {
      const spec = compose.specOf(name, PRESENT);
      const ip = this.#engine.nextAddress();
      const environment = {
        ...spec.environment,
        RABBITMQ_MAIN_URL: this.stage.busUrl,
        RABBITMQ_SCHEDULING_URL: this.stage.busUrl,
      };
      await this.#engine.start({
        ...spec,
        environment,
        name: `${name}${this.stage.suffix}`,
        network: { ip },
        ports: [],
      });
      const url = `http://${ip}:${NEIGHBOUR_PORT}`;
      await eventually(
        async () => {
          if (!(await respondsOk(`${url}/health/ready`)()))
            throw new FriendlyError(`${name} did not become ready.`);
        },
        { timeoutMs: READY_TIMEOUT_MS },
      );
      this.#neighbours.set(called, url);
      if (name !== 'customers') continue;
      const proxy = new TcpProxy(() => ({ host: ip, port: NEIGHBOUR_PORT }));
      const address = await this.#addAddress();
      await proxy.listen(80, address);
      this.#proxies.push(proxy);
      this.namespace.hosts['customers-service'] = address;
    }
  }

  /** Rolls all Deployments out to a release, concurrently like `kubectl apply`. */
  async rollOut(release: Release): Promise<void> {
    const ended = await Promise.allSettled(SERVICES.map(({ name }) => this.namespace.rollOut(name, release)));
    const failure = ended.find(({ status }) => status === 'rejected') as PromiseRejectedResult | undefined;
    if (failure !== undefined) throw failure.reason as Error;
  }

  /** Registers an application for the callers with the administration command, as k8s/README.md describes. */
  makeApplication(release: Release): Promise<Application> {
    return this.namespace.administer(release, 'auth-service-administration', async (admin) => {
      const permitted = [
        '--personas',
        'InternalPartner',
        '--flows',
        'trust-simple,refresh',
        '--allow-refresh',
      ];
      const created = JSON.parse(await admin('--json', 'applications', 'create', 'ship', ...permitted)) as {
        sharedSecret: string;
      };
      return { applicationKey: 'ship', sharedSecret: created.sharedSecret, userName: 'svc.platform' };
    });
  }

  async close(): Promise<void> {
    try {
      await this.namespace.close();
    } finally {
      await Promise.all(this.#proxies.map((proxy) => proxy.stop()));
      await this.#engine.remove(
        Object.keys(NEIGHBOURS).map((name) => this.#engine.container(`${name}${this.stage.suffix}`)),
      );
    }
  }

  #addAddress(): Promise<string> {
    return this.#engine.addAddress(this.#address++);
  }
}
