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
 * A place that is thrown away when its supervisor stops, or this process ends in whatever way: folder,
 * servers and all.
 */
export interface TemporaryPlace extends ServerPlace {
  readonly secrets: SecretFile;
}

/** Whoever opens it has to stop its supervisor. */
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

/** A new folder that `runAs` can reach. */
export function makeTemporaryFolder(runAs: RunAs | null): string {
  // TMPDIR may be private to root; /tmp is open to all.
  const parent = runAs !== null && !isReachableBy(tmpdir(), runAs) ? '/tmp' : tmpdir();
  const folder = mkdtempSync(join(parent, 'property-platform-test-'));
  if (runAs) chmodSync(folder, 0o755);
  return folder;
}

/** A PostgreSQL on a free port, which nobody has started yet. @param isDurable see Postgresql */
export async function makePostgresql(place: ServerPlace, isDurable: boolean): Promise<Postgresql> {
  const [port = 0] = await findFreePorts(1);
  return new Postgresql(place, { port, isDurable });
}

/** A RabbitMQ on free ports, which nobody has started yet. */
export async function makeRabbitmq(place: ServerPlace): Promise<Rabbitmq> {
  const names = ['amqp', 'management', 'distribution', 'epmd'] as const;
  const ports = await findFreePorts(names.length);
  const table = Object.fromEntries(names.map((name, index) => [name, ports[index]]));
  return new Rabbitmq(place, table as unknown as RabbitmqPorts);
}

/** A PostgreSQL and a RabbitMQ for tests. */
export interface TestServers {
  /** Those of TEST_DATABASE_URL, TEST_RABBITMQ_URL and TEST_RABBITMQ_MANAGEMENT_URL that were not set. */
  readonly environment: Variables;
  stop(): Promise<void>;
}

/**
 * Starts what the environment does not name already, on free ports. Nothing of it outlives `stop()` or this
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
 * Where the servers of the tests are.
 * @throws {Error} that names the missing variable and says what provides it
 */
export function testVariable(
  name: 'TEST_DATABASE_URL' | 'TEST_RABBITMQ_URL' | 'TEST_RABBITMQ_MANAGEMENT_URL',
): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set; the global setup of the integration tests provides it`);
  return value;
}
