import { chmodSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePorts } from './ports.ts';
import { Postgresql } from './postgresql.ts';
import { Rabbitmq, type RabbitmqPorts } from './rabbitmq.ts';
import { findRunAs, isReachableBy, type RunAs } from './run-as.ts';
import { cacheFolder, SecretFile, type Variables } from './state-folder.ts';
import { Supervisor, type ServerPlace } from './supervisor.ts';

/**
 * A place that is removed, servers and folder included, when its supervisor stops or this process ends in any
 * way.
 */
export interface TemporaryPlace extends ServerPlace {
  readonly secrets: SecretFile;
}

/** Opens a temporary place. The caller must stop its supervisor. */
export async function openTemporaryPlace(): Promise<TemporaryPlace> {
  const runAs = findRunAs();
  const folder = makeTemporaryFolder(runAs);
  const supervisor = await Supervisor.open({
    recordFile: join(folder, 'run.json'),
    logFolder: join(folder, 'logs'),
    removeFolder: folder,
  });
  const secrets = new SecretFile(join(folder, 'secrets.json'));
  return {
    folder,
    supervisor,
    runAs,
    cacheFolder: cacheFolder(),
    secrets,
    secret: (name) => secrets.get(name),
  };
}

/** Creates a temporary folder that `runAs` can reach. */
export function makeTemporaryFolder(runAs: RunAs | null): string {
  // TMPDIR may be private to root; /tmp is open to all.
  const parent = runAs !== null && !isReachableBy(tmpdir(), runAs) ? '/tmp' : tmpdir();
  const folder = mkdtempSync(join(parent, 'property-platform-test-'));
  if (runAs) chmodSync(folder, 0o755);
  return folder;
}

/** Returns a PostgreSQL on a free port, not yet started. @param isDurable see Postgresql */
export async function makePostgresql(place: ServerPlace, isDurable: boolean): Promise<Postgresql> {
  const [port = 0] = await findFreePorts(1);
  return new Postgresql(place, { port, isDurable });
}

/** Returns a RabbitMQ on free ports, not yet started. */
export async function makeRabbitmq(place: ServerPlace): Promise<Rabbitmq> {
  const names = ['amqp', 'management', 'distribution', 'epmd'] as const;
  const ports = await findFreePorts(names.length);
  const table = Object.fromEntries(names.map((name, index) => [name, ports[index]]));
  return new Rabbitmq(place, table as unknown as RabbitmqPorts);
}

/** A PostgreSQL and a RabbitMQ for tests. */
export interface TestServers {
  /**
   * TEST_DATABASE_URL, TEST_RABBITMQ_URL and TEST_RABBITMQ_MANAGEMENT_URL, except those that the environment
   * sets.
   */
  readonly environment: Variables;
  stop(): Promise<void>;
}

/**
 * Starts the servers that the environment does not name, on free ports. They end with `stop()` or with this
 * process.
 */
export async function startTestServers(): Promise<TestServers> {
  const { TEST_DATABASE_URL, TEST_RABBITMQ_URL } = process.env;
  const place = await openTemporaryPlace();
  const startPostgresql = async (): Promise<Variables> => {
    const postgresql = await makePostgresql(place, false);
    await postgresql.start();
    return { TEST_DATABASE_URL: postgresql.url };
  };
  const startRabbitmq = async (): Promise<Variables> => {
    const rabbitmq = await makeRabbitmq(place);
    await rabbitmq.start();
    return { TEST_RABBITMQ_URL: rabbitmq.url, TEST_RABBITMQ_MANAGEMENT_URL: rabbitmq.managementUrl };
  };
  try {
    const [database, broker] = await Promise.all([
      TEST_DATABASE_URL ? {} : startPostgresql(),
      TEST_RABBITMQ_URL ? {} : startRabbitmq(),
    ]);
    return { environment: { ...database, ...broker }, stop: () => place.supervisor.stop() };
  } catch (error) {
    await place.supervisor.stop();
    throw error;
  }
}

/**
 * Returns the URL of a server of the tests.
 * @throws {Error} with the name of the missing variable and what provides it
 */
export function testVariable(
  name: 'TEST_DATABASE_URL' | 'TEST_RABBITMQ_URL' | 'TEST_RABBITMQ_MANAGEMENT_URL',
): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; the global setup of the integration tests provides it`);
  return value;
}
