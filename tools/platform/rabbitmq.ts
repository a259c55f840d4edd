import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { FriendlyError } from './friendly-error.ts';
import { findInstalledRabbitmq, findOnPath } from './rabbitmq-installation.ts';
import { isServing, RABBITMQ_USER, rabbitmqUrls, startRabbitmqNode } from './rabbitmq-node.ts';
import type { RabbitmqNode, RabbitmqOptions } from './rabbitmq-node.ts';
import { hasDebianPackages, unpackRabbitmq } from './rabbitmq-packages.ts';
import type { Supervisor } from './supervisor.ts';
import { waitUntilReady } from './wait-until.ts';

const run = promisify(execFile);
const DOCKER_IMAGE = 'rabbitmq:4-management';
const DOCKER_STAGE = 1;
const DOCKER_TIMEOUT_MS = 300_000;

export interface StartedRabbitmq extends RabbitmqNode {
  /** Said to the user: where this broker comes from. */
  readonly origin: string;
}

/**
 * Starts a private RabbitMQ from the first source that this machine has: an installed rabbitmq-server, Debian's packages
 * unpacked in private, Docker.
 * @throws {FriendlyError} when there is none.
 */
export async function startRabbitmq(
  supervisor: Supervisor,
  options: RabbitmqOptions & { readonly cacheFolder: string },
): Promise<StartedRabbitmq> {
  const installed = findInstalledRabbitmq();
  if (installed) {
    return { ...(await startRabbitmqNode(supervisor, installed, options)), origin: installed.origin };
  }
  let whyNotDebian = 'this is not a Debian-like system';
  if (hasDebianPackages()) {
    const unpacked = await unpackRabbitmq(options.cacheFolder).catch((error: Error) => {
      whyNotDebian = error.message.trim();
      return null;
    });
    if (unpacked)
      return { ...(await startRabbitmqNode(supervisor, unpacked, options)), origin: unpacked.origin };
  }
  if (await isDockerUsable()) return startInDocker(supervisor, options);
  throw new FriendlyError(
    "No RabbitMQ: none is installed, Docker is not usable, and Debian's packages could not be fetched " +
      `(${whyNotDebian}). Install rabbitmq-server, or name a broker: RABBITMQ_URL=amqp://user:password@host:5672 npm start`,
  );
}

async function isDockerUsable(): Promise<boolean> {
  if (findOnPath('docker') === null) return false;
  return run('docker', ['info'], { timeout: 10_000 }).then(
    () => true,
    () => false,
  );
}

async function startInDocker(supervisor: Supervisor, options: RabbitmqOptions): Promise<StartedRabbitmq> {
  const name = `property-platform-${createHash('sha256').update(options.folder).digest('hex').slice(0, 12)}`;
  supervisor.rememberContainer(name);
  await run('docker', ['rm', '--force', name]);
  const container = await supervisor.spawn({
    name: 'rabbitmq',
    stage: DOCKER_STAGE,
    command: 'docker',
    args: dockerArguments(name, options),
    // By environment, not by argument: arguments are visible to every user of the machine.
    env: { ...process.env, RABBITMQ_DEFAULT_USER: RABBITMQ_USER, RABBITMQ_DEFAULT_PASS: options.password },
    cwd: '/',
    graceMs: 20_000,
  });
  await waitUntilReady(container, () => isServing(options), DOCKER_TIMEOUT_MS);
  return { ...rabbitmqUrls(options), control: null, origin: `Docker (${DOCKER_IMAGE})` };
}

function dockerArguments(name: string, { ports }: RabbitmqOptions): string[] {
  return [
    ...['run', '--rm', '--name', name, '--hostname', 'localhost', '--volume', `${name}:/var/lib/rabbitmq`],
    ...['--publish', `127.0.0.1:${ports.amqp}:5672`, '--publish', `127.0.0.1:${ports.management}:15672`],
    ...['--env', 'RABBITMQ_DEFAULT_USER', '--env', 'RABBITMQ_DEFAULT_PASS', DOCKER_IMAGE],
  ];
}
