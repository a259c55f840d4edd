import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createTestDatabase, findFreePorts, runProcess } from '@platform/testing';
import type { RunningProcess, TestDatabase } from '@platform/testing';
import { migrateWithIdentities, testEnvironment } from './auth-fixture';

const WORKSPACE = join(__dirname, '../../..');
const BUNDLES = join(WORKSPACE, 'dist/apps/auth-service');

/** The deployed programs. */
export const AUTH_SERVICE = join(BUNDLES, 'main.js');
export const ADMINISTRATION = join(BUNDLES, 'admin.js');
export const MIGRATION = join(BUNDLES, 'migrate.js');
export const DEVELOPMENT_IDENTITIES = join(BUNDLES, 'load-development-identities.js');

/** One running process of the service. */
export interface ReplicaProcess extends RunningProcess {
  url: string;
}

/**
 * Builds the programs if they are missing. The integration target builds them first; this call is needed only
 * when a single file is run by hand.
 */
export async function ensureBuilt(): Promise<void> {
  if (existsSync(AUTH_SERVICE)) return;
  await promisify(execFile)(process.execPath, ['tools/build/bundle.ts', 'apps/auth-service'], {
    cwd: WORKSPACE,
  });
}

/** Returns the environment of one process, with free ports. */
export async function processEnvironment(
  databaseUrl: string,
  environment: NodeJS.ProcessEnv = {},
): Promise<Record<string, string>> {
  const [port, metricsPort] = await findFreePorts(2);
  const ports = { PORT: String(port), METRICS_PORT: String(metricsPort) };
  return testEnvironment(databaseUrl, { ...ports, ...environment }) as Record<string, string>;
}

/** Starts the built service in its own process and waits until it is ready. */
export async function startReplicaProcess(
  databaseUrl: string,
  environment: NodeJS.ProcessEnv = {},
): Promise<ReplicaProcess> {
  await ensureBuilt();
  const env = await processEnvironment(databaseUrl, environment);
  const url = `http://127.0.0.1:${env.PORT}`;
  const running = await runProcess({
    entry: AUTH_SERVICE,
    env,
    readyUrl: `${url}/health/ready`,
    timeoutMs: 60_000,
  });
  return { ...running, url };
}

/** Two processes of the built service on one database with the development identities. */
export class ReplicaPair {
  private constructor(
    readonly database: TestDatabase,
    private readonly replicas: readonly [ReplicaProcess, ReplicaProcess],
  ) {}

  /** @param differences variables that differ in the second process */
  static async start(
    environment: NodeJS.ProcessEnv = {},
    differences: NodeJS.ProcessEnv = {},
  ): Promise<ReplicaPair> {
    const database = await createTestDatabase({ migrate: migrateWithIdentities });
    const replicas = await Promise.all([
      startReplicaProcess(database.url, environment),
      startReplicaProcess(database.url, { ...environment, ...differences }),
    ]);
    return new ReplicaPair(database, replicas);
  }

  /** The URL of the first process. */
  get first(): string {
    return this.replicas[0].url;
  }

  /** The URL of the second process. */
  get second(): string {
    return this.replicas[1].url;
  }

  get urls(): readonly [string, string] {
    return [this.first, this.second];
  }

  async stop(): Promise<void> {
    const exitCodes = await Promise.all(this.replicas.map((replica) => replica.stop()));
    await this.database.drop();
    expect(exitCodes).toEqual([0, 0]);
  }
}
