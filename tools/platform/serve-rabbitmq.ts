/**
 * A private RabbitMQ for tests that stop it; thrown away at the end. Prints one line of JSON, `{"url": …, "managementUrl": …}`, when
 * it is ready, and again after each line it reads: `stop` ends the broker in order, `crash` ends every process of it with SIGKILL,
 * `start` starts it again on the same data and ports, and `block` and `unblock` raise and clear its memory alarm, as a broker that
 * runs out of memory does. Stops when its standard input closes or a signal comes.
 *
 * Usage: node tools/platform/serve-rabbitmq.ts
 */
import { join } from 'node:path';
import { findFreePorts } from './free-ports.ts';
import { FriendlyError } from './friendly-error.ts';
import { startRabbitmq, type StartedRabbitmq } from './rabbitmq.ts';
import { SecretFile } from './secrets.ts';
import { servePrivately } from './serve-privately.ts';
import { openStateFolder } from './state-folder.ts';
import type { Supervisor } from './supervisor.ts';

const WORKSPACE = join(import.meta.dirname, '../..');

await servePrivately(async ({ folder, supervisor, runAs }) => {
  const [amqp, management, distribution, epmd] = (await findFreePorts(4)) as [number, number, number, number];
  const options = {
    folder: join(folder, 'rabbitmq'),
    cacheFolder: join(openStateFolder(WORKSPACE), 'cache'),
    ports: { amqp, management, distribution, epmd },
    password: new SecretFile(join(folder, 'rabbitmq.secret')).get('password'),
    runAs,
  };
  const broker = await startRabbitmq(supervisor, options);
  return {
    addresses: { url: broker.amqp, managementUrl: broker.management },
    commands: {
      stop: () => end(supervisor, 'SIGTERM'),
      crash: () => end(supervisor, 'SIGKILL'),
      start: () => startRabbitmq(supervisor, options),
      // Every broker uses more than one byte. It sees the new limit at once.
      block: () => control(broker, 'set_vm_memory_high_watermark', 'absolute', '1'),
      unblock: () => control(broker, 'set_vm_memory_high_watermark', '0.4'),
    },
  };
});

async function end(supervisor: Supervisor, signal: NodeJS.Signals): Promise<void> {
  const node = supervisor.find('rabbitmq');
  if (node === null) return;
  // In order it ends its own children; else they go with it, as with the power.
  process.kill(signal === 'SIGKILL' ? -node.pid : node.pid, signal);
  await node.ended;
}

async function control(broker: StartedRabbitmq, ...args: string[]): Promise<void> {
  if (broker.control === null) throw new FriendlyError(`no rabbitmqctl for a broker from ${broker.origin}`);
  await broker.control(...args);
}
