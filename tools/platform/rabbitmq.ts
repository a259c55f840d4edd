import { execFile } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { FriendlyError } from './errors.ts';
import { provideRabbitmq, type RabbitmqInstallation } from './rabbitmq-installation.ts';
import { makeOwnedFolder } from './run-as.ts';
import { endProcess, waitUntilReady, type ServerPlace } from './supervisor.ts';
import { respondsOk } from './waiting.ts';

/** The ports of a private node, all on 127.0.0.1. */
export interface RabbitmqPorts {
  readonly amqp: number;
  readonly management: number;
  readonly distribution: number;
  readonly epmd: number;
}

const run = promisify(execFile);
const NAME = 'rabbitmq';
const USER = 'platform';
const EPMD_STAGE = 0;
const NODE_STAGE = 1;
const START_TIMEOUT_MS = 120_000;

/**
 * A private RabbitMQ node with its management API on 127.0.0.1, from an installed rabbitmq-server or, without
 * one, from Debian's packages, which are only unpacked. It can be stopped, and started again on the same
 * data.
 */
export class Rabbitmq {
  readonly #place: ServerPlace;
  readonly #folder: string;
  readonly ports: RabbitmqPorts;
  #installation: RabbitmqInstallation | null = null;

  constructor(place: ServerPlace, ports: RabbitmqPorts) {
    this.#place = place;
    this.#folder = join(place.folder, NAME);
    this.ports = ports;
  }

  /** AMQP URL, without a virtual host. */
  get url(): string {
    return `amqp://${USER}:${this.#password}@127.0.0.1:${this.ports.amqp}`;
  }

  /** URL of the management API. */
  get managementUrl(): string {
    return `http://${USER}:${this.#password}@127.0.0.1:${this.ports.management}`;
  }

  /** Source of the server, in words for the user; known once it has started. */
  get origin(): string {
    return this.#installation?.origin ?? 'an unknown source';
  }

  /** @throws {FriendlyError} if this machine has no RabbitMQ and can download none */
  async start(): Promise<void> {
    this.#installation ??= await provideRabbitmq(this.#place.cacheFolder).catch((error: unknown) => {
      throw new FriendlyError(
        `No RabbitMQ: none is installed, and Debian's packages could not be fetched (${(error as Error).message}). ` +
          'Install rabbitmq-server, or name a broker: RABBITMQ_URL=amqp://user:password@host:5672 npm start',
        { cause: error },
      );
    });
    return this.#startNode(this.#installation);
  }

  /** Ends the node: in order with SIGTERM, or all its processes at once with SIGKILL. */
  end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const { amqp, management, distribution } = this.ports;
    return endProcess(this.#place.supervisor, NAME, signal, [amqp, management, distribution]);
  }

  /** Runs `rabbitmqctl`. @throws {FriendlyError} if the installation has none */
  async control(...args: string[]): Promise<void> {
    const home = this.#installation?.home ?? null;
    if (this.#installation === null || home === null)
      throw new FriendlyError(`There is no rabbitmqctl for a broker from ${this.origin}.`);
    const env = this.#environment(this.#installation);
    await run(join(home, 'sbin/rabbitmqctl'), args, { env, cwd: this.#folder, ...this.#place.runAs });
  }

  get #password(): string {
    return this.#place.secret(NAME);
  }

  async #startNode(installation: RabbitmqInstallation): Promise<void> {
    const { supervisor, runAs } = this.#place;
    this.#writeConfiguration(installation);
    const common = { env: this.#environment(installation), cwd: this.#folder, runAs };
    // epmd runs as a child in the foreground: otherwise Erlang starts it as a daemon that never ends.
    if (supervisor.find('epmd')?.hasEnded() !== false)
      await supervisor.spawn({
        ...common,
        name: 'epmd',
        stage: EPMD_STAGE,
        command: installation.epmd,
        args: ['-port', String(this.ports.epmd), '-address', '127.0.0.1'],
        graceMs: 2_000,
      });
    const node = await supervisor.spawn({
      ...common,
      name: NAME,
      stage: NODE_STAGE,
      command: installation.server,
      args: [],
      graceMs: 20_000,
    });
    await waitUntilReady(node, () => this.#isServing(), START_TIMEOUT_MS);
  }

  /** Whether both the management API and the AMQP listener, which opens last, respond. */
  async #isServing(): Promise<boolean> {
    const authorization = `Basic ${Buffer.from(`${USER}:${this.#password}`).toString('base64')}`;
    const overview = respondsOk(`http://127.0.0.1:${this.ports.management}/api/overview`, { authorization });
    return (await accepts(this.ports.amqp)) && (await overview());
  }

  #writeConfiguration(installation: RabbitmqInstallation): void {
    const { runAs } = this.#place;
    makeOwnedFolder(this.#folder, runAs);
    const own = (path: string): void => {
      if (runAs) chownSync(path, runAs.uid, runAs.gid);
    };
    const texts = { enabled_plugins: '[rabbitmq_management].\n', 'rabbitmq.conf': this.#configuration() };
    for (const [name, text] of Object.entries(texts)) {
      writeFileSync(join(this.#folder, name), text, { mode: 0o600 });
      own(join(this.#folder, name));
    }
    for (const name of ['home', dataFolder(installation), 'log']) {
      const folder = join(this.#folder, name);
      if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 });
      own(folder);
    }
  }

  #configuration(): string {
    return [
      `listeners.tcp.1 = 127.0.0.1:${this.ports.amqp}`,
      'management.tcp.ip = 127.0.0.1',
      `management.tcp.port = ${this.ports.management}`,
      `default_user = ${USER}`,
      `default_pass = ${this.#password}`,
      'cluster_formation.peer_discovery_backend = classic_config',
      'log.console = true',
      'log.console.level = info',
      'log.file = false',
      '',
    ].join('\n');
  }

  #environment(installation: RabbitmqInstallation): NodeJS.ProcessEnv {
    const folder = this.#folder;
    const { ports } = this;
    return {
      PATH: [...installation.binFolders, process.env['PATH'] ?? ''].join(':'),
      LANG: 'C.UTF-8',
      HOME: join(folder, 'home'),
      ...(installation.home === null ? {} : { RABBITMQ_HOME: installation.home }),
      ERL_EPMD_PORT: String(ports.epmd),
      ERL_EPMD_ADDRESS: '127.0.0.1',
      RABBITMQ_NODENAME: 'platform@localhost',
      RABBITMQ_NODE_PORT: String(ports.amqp),
      RABBITMQ_DIST_PORT: String(ports.distribution),
      RABBITMQ_MNESIA_BASE: join(folder, dataFolder(installation)),
      RABBITMQ_LOG_BASE: join(folder, 'log'),
      RABBITMQ_PID_FILE: join(folder, 'pid'),
      RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
      RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'enabled_plugins'),
      RABBITMQ_CONF_ENV_FILE: '/dev/null',
      // Makes the start script exec the Erlang VM instead of waiting beside it, so that a signal reaches the
      // broker.
      RUNNING_UNDER_SYSTEMD: 'true',
      // No other node connects, so distribution listens on the loopback interface only; idle schedulers do
      // not busy-wait.
      RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS:
        '-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none',
    };
  }
}

/** Returns a data folder of its own for each major version: RabbitMQ 4 does not start on the data of 3.10. */
function dataFolder({ version }: RabbitmqInstallation): string {
  return `data-${version?.split('.', 1)[0] ?? 'installed'}`;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
