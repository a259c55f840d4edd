import { chmodSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePorts } from './free-ports.ts';
import { findPostgresqlBinaries } from './postgresql-binaries.ts';
import { startPostgresql } from './postgresql.ts';
import { startRabbitmq } from './rabbitmq.ts';
import { findRunAs, isReachableBy, type RunAs } from './run-as.ts';
import { SecretFile } from './secrets.ts';
import { openStateFolder } from './state-folder.ts';
import { Supervisor } from './supervisor.ts';

/** A private PostgreSQL and RabbitMQ for tests. */
export interface TestInfrastructure {
  /** TEST_DATABASE_URL, TEST_RABBITMQ_URL and TEST_RABBITMQ_MANAGEMENT_URL. */
  readonly environment: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

/**
 * Starts what the environment does not name already (TEST_DATABASE_URL, TEST_RABBITMQ_URL with its management URL), on free
 * ports and in a temporary folder. Nothing of it outlives `stop()` or this process.
 */
export async function startTestInfrastructure(workspace: string): Promise<TestInfrastructure> {
  const named = process.env;
  const { folder, supervisor, runAs } = await openTemporaryPlace();
  try {
    const context = { workspace, folder, runAs, cacheFolder: join(openStateFolder(workspace), 'cache') };
    const [database, broker] = await Promise.all([
      named['TEST_DATABASE_URL'] ? {} : startTestPostgresql(supervisor, context),
      named['TEST_RABBITMQ_URL'] ? {} : startTestRabbitmq(supervisor, context),
    ]);
    return { environment: { ...database, ...broker }, stop: () => supervisor.stop() };
  } catch (error) {
    await supervisor.stop();
    throw error;
  }
}

interface Context {
  readonly workspace: string;
  readonly folder: string;
  readonly cacheFolder: string;
  readonly runAs: RunAs | null;
}

async function startTestPostgresql(
  supervisor: Supervisor,
  context: Context,
): Promise<Record<string, string>> {
  const [port] = (await findFreePorts(1)) as [number];
  const url = await startPostgresql(supervisor, {
    binaries: findPostgresqlBinaries(context.workspace, context.cacheFolder, context.runAs),
    folder: join(context.folder, 'postgresql'),
    port,
    password: new SecretFile(join(context.folder, 'postgresql.secret')).get('password'),
    runAs: context.runAs,
    durable: false,
  });
  return { TEST_DATABASE_URL: url };
}

async function startTestRabbitmq(supervisor: Supervisor, context: Context): Promise<Record<string, string>> {
  const [amqp, management, distribution, epmd] = (await findFreePorts(4)) as [number, number, number, number];
  const urls = await startRabbitmq(supervisor, {
    folder: join(context.folder, 'rabbitmq'),
    cacheFolder: context.cacheFolder,
    ports: { amqp, management, distribution, epmd },
    password: new SecretFile(join(context.folder, 'rabbitmq.secret')).get('password'),
    runAs: context.runAs,
  });
  return { TEST_RABBITMQ_URL: urls.amqp, TEST_RABBITMQ_MANAGEMENT_URL: urls.management ?? '' };
}

/** Where servers run that are thrown away when their supervisor stops, folder and all. */
export interface TemporaryPlace {
  readonly folder: string;
  readonly supervisor: Supervisor;
  readonly runAs: RunAs | null;
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
  return { folder, supervisor, runAs };
}

/** A new folder that `runAs` can reach. */
export function makeTemporaryFolder(runAs: RunAs | null): string {
  // TMPDIR may be private to root; /tmp is open to all.
  const parent = runAs !== null && !isReachableBy(tmpdir(), runAs) ? '/tmp' : tmpdir();
  const folder = mkdtempSync(join(parent, 'property-platform-test-'));
  if (runAs) chmodSync(folder, 0o755);
  return folder;
}
