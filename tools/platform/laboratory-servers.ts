import { join } from 'node:path';
import { findFreePorts } from './free-ports.ts';
import { findPostgresqlBinaries } from './postgresql-binaries.ts';
import { startPostgresql } from './postgresql.ts';
import type { RabbitmqUrls } from './rabbitmq-node.ts';
import { startRabbitmq } from './rabbitmq.ts';
import { findRunAs } from './run-as.ts';
import { SecretFile } from './secrets.ts';
import { openStateFolder } from './state-folder.ts';
import type { Supervisor } from './supervisor.ts';

/** A durable PostgreSQL and a RabbitMQ in `folder`: the superuser's URL, and the broker's. */
export function startServers(
  supervisor: Supervisor,
  folder: string,
  workspace: string,
): readonly [Promise<string>, Promise<RabbitmqUrls>] {
  const runAs = findRunAs();
  const cacheFolder = join(openStateFolder(workspace), 'cache');
  const secrets = new SecretFile(join(folder, 'servers.secret'));
  const startDatabase = async (): Promise<string> => {
    const [port] = (await findFreePorts(1)) as [number];
    return startPostgresql(supervisor, {
      binaries: findPostgresqlBinaries(workspace, cacheFolder, runAs),
      folder: join(folder, 'postgresql'),
      port,
      password: secrets.get('postgresql'),
      runAs,
      durable: true, // as in production: what is measured must be what is promised
    });
  };
  const startBroker = async (): Promise<RabbitmqUrls> => {
    const [amqp, management, distribution, epmd] = (await findFreePorts(4)) as [
      number,
      number,
      number,
      number,
    ];
    const ports = { amqp, management, distribution, epmd };
    const options = { folder: join(folder, 'rabbitmq'), cacheFolder, ports, runAs };
    return startRabbitmq(supervisor, { ...options, password: secrets.get('rabbitmq') });
  };
  return [startDatabase(), startBroker()];
}
