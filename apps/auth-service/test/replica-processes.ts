import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createTestDatabase, findFreePorts, runProcess } from '@platform/testing';
import type { RunningProcess, TestDatabase } from '@platform/testing';
import { migrateWithIdentities, testEnvironment } from './auth-fixture';

const WORKSPACE = join(__dirname, '../../..');
const BUNDLES = join(WORKSPACE, 'dist/apps/auth-service');

/** The programs as they are deployed. */
export const AUTH_SERVICE = join(BUNDLES, 'main.js');
export const ADMINISTRATION = join(BUNDLES, 'admin.js');
export const MIGRATION = join(BUNDLES, 'migrate.js');
export const DEVELOPMENT_IDENTITIES = join(BUNDLES, 'load-development-identities.js');

/** One running process of the service. */
export interface ReplicaProcess extends RunningProcess {
  url: string;
}

/**
 * Makes sure that the programs are there. The integration target builds first; this is for running one file
 * by hand.
 */
export async function ensureBuilt(): Promise<void> {
  if (existsSync(AUTH_SERVICE)) return;
  await promisify(execFile)(process.execPath, ['tools/build/bundle.ts', 'apps/auth-service'], {
    cwd: WORKSPACE,
  });
}

/** The environment of one process, with ports of its own. */
export async function processEnvironment(
  databaseUrl: string,
  environment: NodeJS.ProcessEnv = {},
): Promise<Record<string, string>> {
  const [port, metricsPort] = await findFreePorts(2);
  const ports = { PORT: String(port), METRICS_PORT: String(metricsPort) };
  return testEnvironment(databaseUrl, { ...ports, ...environment }) as Record<string, string>;
}

/** Starts the built service as a process of its own and waits until it is ready. */
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

  /** @param differences what the second is told differently */
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

  /** Address of the first process. */
  get first(): string {
    return this.replicas[0].url;
  }

  /** Address of the second process. */
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
