import { execFile } from 'node:child_process';
import { chownSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { RabbitmqInstallation } from './rabbitmq-installation.ts';
import { makeOwnedFolder, type RunAs } from './run-as.ts';
import type { Supervisor } from './supervisor.ts';
import { answersOk, waitUntilReady } from './wait-until.ts';

const run = promisify(execFile);

/** The ports of a private node, all on 127.0.0.1. */
export interface RabbitmqPorts {
  readonly amqp: number;
  readonly management: number;
  readonly distribution: number;
  readonly epmd: number;
}

export interface RabbitmqOptions {
  readonly folder: string;
  readonly ports: RabbitmqPorts;
  readonly password: string;
  readonly runAs: RunAs | null;
}

/** Where a broker is: AMQP, and the management API when there is one. */
export interface RabbitmqUrls {
  readonly amqp: string;
  readonly management: string | null;
}

/** A running private node. */
export interface RabbitmqNode extends RabbitmqUrls {
  /** Runs `rabbitmqctl` on the node; null when the installation has none. */
  readonly control: ((...args: string[]) => Promise<void>) | null;
}

export const RABBITMQ_USER = 'platform';
const EPMD_STAGE = 0;
const NODE_STAGE = 1;
const START_TIMEOUT_MS = 120_000;

/** Starts a private RabbitMQ node with its management API from an installation; it touches nothing outside its folder. */
export async function startRabbitmqNode(
  supervisor: Supervisor,
  installation: RabbitmqInstallation,
  options: RabbitmqOptions,
): Promise<RabbitmqNode> {
  writeConfiguration(options);
  const env = nodeEnvironment(installation, options);
  // In the foreground and as our child: left to itself Erlang starts a daemon that stays for good.
  await supervisor.spawn({
    name: 'epmd',
    stage: EPMD_STAGE,
    command: installation.epmd,
    args: ['-port', String(options.ports.epmd), '-address', '127.0.0.1'],
    env,
    cwd: options.folder,
    runAs: options.runAs,
    graceMs: 2_000,
  });
  const node = await supervisor.spawn({
    name: 'rabbitmq',
    stage: NODE_STAGE,
    command: installation.server,
    args: [],
    env,
    cwd: options.folder,
    runAs: options.runAs,
    graceMs: 20_000,
  });
  await waitUntilReady(node, () => isServing(options), START_TIMEOUT_MS);
  return { ...rabbitmqUrls(options), control: controlOf(installation, options, env) };
}

function controlOf(
  { home }: RabbitmqInstallation,
  { runAs, folder }: RabbitmqOptions,
  env: NodeJS.ProcessEnv,
): RabbitmqNode['control'] {
  if (home === null) return null;
  const identity = runAs === null ? {} : { uid: runAs.uid, gid: runAs.gid };
  return async (...args) => {
    await run(join(home, 'sbin/rabbitmqctl'), args, { env, cwd: folder, ...identity });
  };
}

/** The addresses of a node with these options. */
export function rabbitmqUrls(options: RabbitmqOptions): RabbitmqUrls {
  const login = `${RABBITMQ_USER}:${options.password}`;
  return {
    amqp: `amqp://${login}@127.0.0.1:${options.ports.amqp}`,
    management: `http://${login}@127.0.0.1:${options.ports.management}`,
  };
}

/** True when both the management API and the AMQP listener (which opens last) answer. */
export async function isServing(options: RabbitmqOptions): Promise<boolean> {
  const authorization = `Basic ${Buffer.from(`${RABBITMQ_USER}:${options.password}`).toString('base64')}`;
  const url = `http://127.0.0.1:${options.ports.management}/api/overview`;
  return (await accepts(options.ports.amqp)) && (await answersOk(url, { authorization })());
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

function writeConfiguration(options: RabbitmqOptions): void {
  makeOwnedFolder(options.folder, options.runAs);
  const write = (name: string, text: string): void => {
    const file = join(options.folder, name);
    writeFileSync(file, text, { mode: 0o600 });
    if (options.runAs) chownSync(file, options.runAs.uid, options.runAs.gid);
  };
  write('enabled_plugins', '[rabbitmq_management].\n');
  write('rabbitmq.conf', configuration(options));
  for (const name of ['home', 'data', 'log']) {
    const folder = join(options.folder, name);
    if (!existsSync(folder)) mkdirSync(folder, { mode: 0o700 });
    if (options.runAs) chownSync(folder, options.runAs.uid, options.runAs.gid);
  }
}

function configuration({ ports, password }: RabbitmqOptions): string {
  return [
    `listeners.tcp.1 = 127.0.0.1:${ports.amqp}`,
    'management.tcp.ip = 127.0.0.1',
    `management.tcp.port = ${ports.management}`,
    `default_user = ${RABBITMQ_USER}`,
    `default_pass = ${password}`,
    'cluster_formation.peer_discovery_backend = classic_config',
    'log.console = true',
    'log.console.level = info',
    'log.file = false',
    '',
  ].join('\n');
}

function nodeEnvironment(installation: RabbitmqInstallation, options: RabbitmqOptions): NodeJS.ProcessEnv {
  const { folder, ports } = options;
  return {
    PATH: [...installation.binFolders, process.env['PATH'] ?? ''].join(':'),
    LANG: 'C.UTF-8',
    HOME: join(folder, 'home'),
    ...(installation.libraryFolders.length > 0
      ? { LD_LIBRARY_PATH: installation.libraryFolders.join(':') }
      : {}),
    ...(installation.home === null ? {} : { RABBITMQ_HOME: installation.home }),
    ERL_EPMD_PORT: String(ports.epmd),
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_NODENAME: 'platform@localhost',
    RABBITMQ_NODE_PORT: String(ports.amqp),
    RABBITMQ_DIST_PORT: String(ports.distribution),
    RABBITMQ_MNESIA_BASE: join(folder, 'data'),
    RABBITMQ_LOG_BASE: join(folder, 'log'),
    RABBITMQ_PID_FILE: join(folder, 'pid'),
    RABBITMQ_CONFIG_FILE: join(folder, 'rabbitmq.conf'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'enabled_plugins'),
    RABBITMQ_CONF_ENV_FILE: '/dev/null',
    // Makes the start script become the Erlang machine instead of waiting beside it, so that a signal reaches the broker.
    RUNNING_UNDER_SYSTEMD: 'true',
    // The node talks to nobody else; and an idle machine stays idle (no busy waiting).
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS:
      '-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none',
  };
}
