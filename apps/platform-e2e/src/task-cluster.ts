import { join } from 'node:path';
import { createTestBroker, createTestDatabase, findFreePorts, runProcess } from '@platform/testing';
import type { RunningProcess, TestBroker, TestDatabase } from '@platform/testing';
import { localUrl, makeSecrets } from './environments';
import type { Variables } from './environments';

const WORKSPACE = join(__dirname, '../../..');
/** A few seconds as a rule; a machine that does much else at the same time takes far longer. */
const READY_TIMEOUT_MS = 100_000;
const HOUR_MS = 3_600_000;

/** A process of the task service. */
export interface TaskProcess extends RunningProcess {
  readonly variables: Variables;
  readonly nodeOptions: readonly string[];
}

/** Several processes of the built task service on one database and one broker, and nothing else of the platform: without an auth
 *  service they take no requests, but they schedule, publish and consume. */
export class TaskCluster {
  readonly processes: TaskProcess[] = [];

  private constructor(
    readonly database: TestDatabase,
    readonly broker: TestBroker,
    private readonly variables: Variables,
  ) {}

  /** A migrated database and a virtual host, no process yet. */
  static async prepare(): Promise<TaskCluster> {
    const broker = await createTestBroker();
    const database = await createTestDatabase({ migrate: () => Promise.resolve() });
    const role = await database.createRole();
    const variables = taskVariables(role.url, broker.url);
    const migrating = await runProcess({
      entry: join(WORKSPACE, 'dist/apps/task-service/migrate.js'),
      env: { ...variables, MIGRATION_DATABASE_URL: database.ownerUrl },
    });
    if ((await migrating.exited) !== 0) throw new Error(`not migrated:\n${migrating.output()}`);
    return new TaskCluster(database, broker, variables);
  }

  /** Starts a process whose wall clock is off by `clockOffsetHours`. */
  async start(clockOffsetHours = 0, overrides: Variables = {}): Promise<TaskProcess> {
    const [port, metricsPort] = (await findFreePorts(2)) as [number, number];
    const variables = {
      ...this.variables,
      PORT: String(port),
      METRICS_PORT: String(metricsPort),
      CLOCK_OFFSET_MS: String(clockOffsetHours * HOUR_MS),
      ...overrides,
    };
    return this.run(variables, ['--require', join(__dirname, 'shifted-clock.cjs')]);
  }

  /** Starts a process like one that has ended, on the same ports. */
  async restart(ended: TaskProcess): Promise<TaskProcess> {
    this.processes.splice(this.processes.indexOf(ended), 1);
    return this.run(ended.variables, ended.nodeOptions);
  }

  /** Runs the operator's command line to its end, as `node admin.js …` in the image does. */
  async administer(...args: string[]): Promise<{ exitCode: number | null; output: string }> {
    const running = await runProcess({
      entry: join(WORKSPACE, 'dist/apps/task-service/admin.js'),
      args,
      env: this.variables,
    });
    return { exitCode: await running.exited, output: running.output() };
  }

  /** Ends what runs and takes database and broker away. */
  async stop(): Promise<void> {
    await Promise.all(
      this.processes.map(async (running) => {
        // A stopped process takes no other signal.
        running.child.kill('SIGCONT');
        await running.stop('SIGKILL');
      }),
    );
    await Promise.all([this.database.drop(), this.broker.drop()]);
  }

  private async run(variables: Variables, nodeOptions: readonly string[]): Promise<TaskProcess> {
    const running = await runProcess({
      entry: join(WORKSPACE, 'dist/apps/task-service/main.js'),
      nodeOptions,
      env: variables,
      readyUrl: `${localUrl(Number(variables['PORT']))}/health/startup`,
      timeoutMs: READY_TIMEOUT_MS,
    });
    const process = { ...running, variables, nodeOptions };
    this.processes.push(process);
    return process;
  }
}

function taskVariables(databaseUrl: string, brokerUrl: string): Variables {
  const secrets = makeSecrets();
  return {
    ...{ NODE_ENV: 'production', HOST: '127.0.0.1', SHUTDOWN_GRACE_MS: '0', LOG_LEVEL: 'warn' },
    DATABASE_URL: databaseUrl,
    ...{ RABBITMQ_MAIN_URL: brokerUrl, RABBITMQ_SCHEDULING_URL: brokerUrl },
    ...{ TOKEN_ISSUER: 'https://auth.platform.test', TOKEN_AUDIENCE: 'platform-e2e' },
    ...{ ACCESS_TOKEN_HMAC_KEY: secrets.accessTokenKey, ACCESS_TOKEN_HMAC_KEY_ID: 'access-e2e' },
    CURSOR_HMAC_KEY: secrets.cursorKey,
    // Nobody answers there.
    AUTH_SERVICE_URL: localUrl(9),
    ...{ SERVICE_APPLICATION_KEY: 'platform-services', SERVICE_USER_NAME: 'svc.platform' },
    SERVICE_SHARED_SECRET: secrets.serviceSecret,
  };
}
