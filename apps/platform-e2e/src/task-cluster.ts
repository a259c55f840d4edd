import { join } from 'node:path';
import { localUrl } from '#platform/environments.ts';
import type { Statement } from '#platform/postgresql.ts';
import type { Program } from '#platform/programs.ts';
import type { Variables } from '#platform/state-folder.ts';
import type { Ended, TestPlatform } from '#platform/test-platform.ts';
import { createPlatform } from './platform';

const HOUR_MS = 3_600_000;

/** Several processes of the built task service on one database and one virtual host, and nothing else of the platform: without an auth
 *  service they take no requests, but they schedule, publish and consume. */
export class TaskCluster {
  readonly processes: Program[] = [];

  private constructor(readonly platform: TestPlatform) {}

  /** A migrated database and a virtual host, no process yet. */
  static async prepare(): Promise<TaskCluster> {
    const platform = await createPlatform({
      variables: ({ mainBusUrl }) => ({
        ...{ SHUTDOWN_GRACE_MS: '0', LOG_LEVEL: 'warn', RABBITMQ_SCHEDULING_URL: mainBusUrl },
        // Nobody answers there.
        AUTH_SERVICE_URL: localUrl(9),
      }),
    });
    await platform.migrate('task');
    return new TaskCluster(platform);
  }

  get bus() {
    return this.platform.bus('main');
  }

  query<Row extends object>(statement: Statement): Promise<Row[]> {
    return this.platform.query<Row>('task', statement);
  }

  /** Starts a process whose wall clock is off by `clockOffsetHours`. */
  async start(clockOffsetHours = 0, overrides: Variables = {}): Promise<Program> {
    const started = await this.platform.addReplica('task', {
      variables: { CLOCK_OFFSET_MS: String(clockOffsetHours * HOUR_MS), ...overrides },
      nodeOptions: ['--require', join(__dirname, 'shifted-clock.cjs')],
      readyPath: '/health/startup',
    });
    this.processes.push(started);
    return started;
  }

  /** Runs the operator's command line to its end, as `node admin.js …` in the image does. */
  administer(...args: string[]): Promise<Ended> {
    const { settings } = this.platform;
    const variables = {
      DATABASE_URL: settings.databases.task.app,
      RABBITMQ_MAIN_URL: settings.mainBusUrl,
      RABBITMQ_SCHEDULING_URL: settings.mainBusUrl,
    };
    return this.platform.runToEnd('admin', ['dist/apps/task-service/admin.js', ...args], variables);
  }

  async stop(): Promise<void> {
    // A stopped process takes no other signal.
    for (const running of this.processes) if (!running.hasEnded()) running.signal('SIGCONT');
    await this.platform.stop('SIGKILL');
  }
}
