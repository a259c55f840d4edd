import { join } from 'node:path';
import { render } from '#manifests/renderings.ts';
import { FriendlyError } from '#platform/errors.ts';
import { SERVICES } from '#platform/programs.ts';
import { TcpProxy } from '#platform/tcp-proxy.ts';
import { answersOk, eventually } from '#platform/waiting.ts';
import type { Compose } from './compose.ts';
import type { Engine } from './engine.ts';
import type { Addresses, Application } from './load.ts';
import { PRESENT } from './images.ts';
import { Namespace, type Release } from './namespace.ts';
import { secretsOf } from './servers.ts';
import type { Stage } from './servers.ts';

const FIRST_SERVICE_ADDRESS = 2;
const NEIGHBOURS = ['customers', 'scheduling', 'completion-receiver'];
const NEIGHBOUR_PORT = 8080;
const READY_TIMEOUT_MS = 60_000;

/** The manifests of an overlay, and the images of one release. */
export function readRelease(workspace: string, overlay: string, tag: string): Release {
  return {
    tag,
    database: render(workspace, join('k8s/overlays', overlay, 'database')),
    services: render(workspace, join('k8s/overlays', overlay)),
  };
}

/** One overlay played in a namespace, with the neighbours that it needs beside it. */
export class Overlay {
  readonly namespace: Namespace;
  readonly stage: Stage;
  readonly secrets: Map<string, string>;
  readonly #engine: Engine;
  readonly #proxies: TcpProxy[] = [];
  #address = FIRST_SERVICE_ADDRESS;
  #receiver = '';

  constructor(engine: Engine, stage: Stage, workspace: string) {
    this.#engine = engine;
    this.stage = stage;
    // The example of the production overlay; the others leave the same secrets to be made by hand.
    const prepared = render(workspace, 'k8s/overlays/production/prepare');
    this.secrets = secretsOf(prepared, stage);
    this.namespace = new Namespace(engine, this.secrets);
  }

  /** Where callers find the Services. */
  get addresses(): Addresses {
    const { hosts } = this.namespace;
    const of = (name: string): string => `http://${hosts[name] ?? ''}`;
    return {
      auth: of('auth-service'),
      settings: of('settings-service'),
      task: of('task-service'),
      receiver: this.#receiver,
    };
  }

  /** Opens the Services, and starts the other teams' systems as the compose file configures them. */
  async prepare(release: Release, compose: Compose): Promise<void> {
    await this.namespace.openServices(release, () => this.#addAddress());
    for (const name of NEIGHBOURS) {
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
          if (!(await answersOk(`${url}/health/ready`)()))
            throw new FriendlyError(`${name} does not become ready.`);
        },
        { timeoutMs: READY_TIMEOUT_MS },
      );
      if (name === 'completion-receiver') this.#receiver = url;
      if (name !== 'customers') continue;
      const proxy = new TcpProxy(() => ({ host: ip, port: NEIGHBOUR_PORT }));
      const address = await this.#addAddress();
      await proxy.listen(80, address);
      this.#proxies.push(proxy);
      this.namespace.hosts['customers-service'] = address;
    }
  }

  /** Brings every Deployment to a release, all at once as `kubectl apply` does. */
  async rollOut(release: Release): Promise<void> {
    const ended = await Promise.allSettled(SERVICES.map(({ name }) => this.namespace.rollOut(name, release)));
    const failure = ended.find(({ status }) => status === 'rejected') as PromiseRejectedResult | undefined;
    if (failure !== undefined) throw failure.reason as Error;
  }

  /** An application for the callers, made by administration as k8s/README.md says. */
  makeApplication(release: Release): Promise<Application> {
    return this.namespace.administer(release, 'auth-service-administration', async (admin) => {
      const permitted = ['--personas', 'InternalPartner', '--flows', 'trust-simple'];
      const made = JSON.parse(await admin('--json', 'applications', 'create', 'ship', ...permitted)) as {
        sharedSecret: string;
      };
      return { applicationKey: 'ship', sharedSecret: made.sharedSecret, userName: 'svc.platform' };
    });
  }

  async close(): Promise<void> {
    try {
      await this.namespace.close();
    } finally {
      await Promise.all(this.#proxies.map((proxy) => proxy.stop()));
      await this.#engine.remove(
        NEIGHBOURS.map((name) => this.#engine.container(`${name}${this.stage.suffix}`)),
      );
    }
  }

  #addAddress(): Promise<string> {
    return this.#engine.takeAddress(this.#address++);
  }
}
