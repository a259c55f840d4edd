import { join } from 'node:path';
import {
  addressVariables,
  APPLICATION_SECRETS,
  DEVELOPMENT_PASSWORD,
  localUrl,
  type PlatformSettings,
} from '#platform/environments.ts';
import { defectsInLog } from '#platform/log-errors.ts';
import type { Statement } from '#platform/postgresql.ts';
import { openTemporaryPlace, testVariable } from '#platform/private-servers.ts';
import type { Program } from '#platform/programs.ts';
import type { Variables } from '#platform/state-folder.ts';
import { type BusName, type Ended, type ServerAddresses, TestPlatform } from '#platform/test-platform.ts';
import { type BrokerAddresses, MIN_SECRET_LENGTH } from '@platform/testing';

/**
 * Time for which readiness is 503 before a service stops accepting requests. Long enough to observe, short
 * enough for a test.
 */
export const SHUTDOWN_GRACE_MS = 2_000;

interface PlatformOptions {
  readonly variables?: (settings: PlatformSettings) => Variables | Promise<Variables>;
  /** Addresses of a broker to use instead of the one that all suites share. */
  readonly broker?: BrokerAddresses;
  /** Log text of an error that the suite causes on purpose. */
  readonly expectedError?: string;
}

/** Creates databases and virtual hosts on the test servers. Starts no program. */
export async function createPlatform({
  variables,
  broker,
  expectedError,
}: PlatformOptions = {}): Promise<TestPlatform> {
  const { supervisor, folder } = await openTemporaryPlace();
  const servers: ServerAddresses = {
    databaseUrl: testVariable('TEST_DATABASE_URL'),
    rabbitmqUrl: broker?.url ?? testVariable('TEST_RABBITMQ_URL'),
    managementUrl: broker?.managementUrl ?? testVariable('TEST_RABBITMQ_MANAGEMENT_URL'),
  };
  const platform: TestPlatform = await TestPlatform.create({
    supervisor,
    folder,
    servers,
    hasSingleSignOn: true,
    variables: async (settings) => ({
      SHUTDOWN_GRACE_MS: String(SHUTDOWN_GRACE_MS),
      ...(await variables?.(settings)),
    }),
    onStopped: async () => {
      const logs = platform.logs();
      await supervisor.stop();
      expectNoDefect(logs, expectedError);
    },
  });
  return platform;
}

/**
 * Fails if a log holds a defect. Outages are warnings, not defects.
 * @param logs logs by program
 */
function expectNoDefect(logs: ReadonlyMap<string, string>, expectedError: string | undefined): void {
  const isExpected = (line: string): boolean => expectedError !== undefined && line.includes(expectedError);
  const found = [...logs].flatMap(([program, log]) =>
    defectsInLog(log)
      .filter((line) => !isExpected(line))
      .map((line) => `${program}: ${line}`),
  );
  if (found.length > 0) throw new Error(`a service misbehaved:\n  ${found.join('\n  ')}`);
}

/** Starts a whole platform of built deployables, each in its own process. */
export async function startPlatform(options: PlatformOptions = {}): Promise<TestPlatform> {
  const platform = await createPlatform(options);
  try {
    await platform.startEverything();
    return platform;
  } catch (error) {
    await platform.stop('SIGKILL');
    throw error;
  }
}

export function tour(platform: TestPlatform, overrides: Variables = {}): Promise<Ended> {
  const variables = { ...addressVariables(platform.settings.ports), ...overrides };
  return platform.runToEnd('tour', ['tools/tour/main.ts'], variables);
}

/** Returns the bodies of the messages in error and skipped queues, which a receiver could not handle. */
export async function rejectedMessages(platform: TestPlatform): Promise<string[]> {
  const rejected: string[] = [];
  for (const name of ['main', 'scheduling'] satisfies BusName[]) {
    const bus = platform.bus(name);
    for (const queue of await bus.queues())
      if (/_(error|skipped)$/.test(queue))
        for (const { body } of await bus.get(queue, 10)) rejected.push(`${queue}: ${body}`);
  }
  return rejected;
}

/** Returns the secrets in a platform's configuration, as a map from value to kind. */
export function knownSecrets({ secrets, settings }: TestPlatform): ReadonlyMap<string, string> {
  const found = new Map<string, string>([[DEVELOPMENT_PASSWORD, 'development password']]);
  for (const [key, secret] of Object.entries(APPLICATION_SECRETS))
    found.set(secret, `shared secret of ${key}`);
  for (const [name, value] of secrets.entries()) found.set(value, name);
  for (const url of [settings.mainBusUrl, settings.schedulingBusUrl]) {
    const password = decodeURIComponent(new URL(url).password);
    // Excludes `guest`, which is also an account name of the broker.
    if (password.length >= MIN_SECRET_LENGTH) found.set(password, 'server password');
  }
  return found;
}

/**
 * Makes every statement of a kind on the task service's database, e.g. `INSERT ON task.schedules`, take
 * `durationMs`, so that its request or message is in progress for as long as a test needs.
 */
export async function slowDown(platform: TestPlatform, kind: string, durationMs: number): Promise<void> {
  await platform.query(
    'task',
    `CREATE OR REPLACE FUNCTION public.take_time() RETURNS trigger LANGUAGE plpgsql AS
     $$ BEGIN PERFORM pg_sleep(${String(durationMs / 1_000)}); RETURN NULL; END $$`,
    `CREATE TRIGGER take_time BEFORE ${kind} FOR EACH STATEMENT EXECUTE FUNCTION public.take_time()`,
  );
}

/** Reverts `slowDown`, after the statements in progress have ended. */
export async function speedUp(platform: TestPlatform): Promise<void> {
  await platform.query('task', 'DROP FUNCTION public.take_time() CASCADE');
}

/** Returns the number of statements that `slowDown` is delaying now. */
export async function slowStatements(platform: TestPlatform): Promise<number> {
  const [row] = await platform.query<{ count: number }>(
    'task',
    `SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'`,
  );
  return row?.count ?? 0;
}

const HOUR_MS = 3_600_000;

/**
 * Several processes of the built task service on one database and one virtual host, without the rest of the
 * platform. They accept no requests, because there is no auth-service, but they schedule, publish and
 * consume.
 */
export class TaskCluster {
  readonly processes: Program[] = [];

  private constructor(readonly platform: TestPlatform) {}

  /** Creates a migrated database and a virtual host. Starts no process. */
  static async prepare(options: Pick<PlatformOptions, 'expectedError'> = {}): Promise<TaskCluster> {
    const platform = await createPlatform({
      ...options,
      variables: ({ mainBusUrl }) => ({
        SHUTDOWN_GRACE_MS: '0',
        LOG_LEVEL: 'warn',
        RABBITMQ_SCHEDULING_URL: mainBusUrl,
        // Nothing listens on this port.
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

  /** Starts a process whose wall clock is ahead by `clockOffsetHours`. */
  async start(clockOffsetHours = 0, overrides: Variables = {}): Promise<Program> {
    const started = await this.platform.addReplica('task', {
      variables: { CLOCK_OFFSET_MS: String(clockOffsetHours * HOUR_MS), ...overrides },
      nodeOptions: ['--require', join(__dirname, 'shifted-clock.cjs')],
      readyPath: '/health/startup',
    });
    this.processes.push(started);
    return started;
  }

  /** Runs the operator's command line to its end, like `node admin.js …` in the image. */
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
    // A process stopped by SIGSTOP handles no other signal.
    for (const running of this.processes) if (!running.hasEnded()) running.signal('SIGCONT');
    await this.platform.stop('SIGKILL');
  }
}
