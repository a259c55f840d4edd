import type { NestFastifyApplication } from '@nestjs/platform-fastify';
import type { MessageContract } from '@platform/contracts';
import { runMigrations } from '@platform/database';
import { connectBus, exchangeName } from '@platform/messaging';
import type { PlainBus } from '@platform/messaging';
import { Persona } from '@platform/personas';
import { createServiceApplication } from '@platform/service-defaults';
import {
  authServiceVariables,
  bearer,
  createTestBroker,
  createTestDatabase,
  eventually,
  sharedMigration,
  startAuthServiceDouble,
  watchLog,
  watchTraffic,
} from '@platform/testing';
import type { AuthServiceDouble, TestBroker, TestDatabase } from '@platform/testing';
import { SYSTEM_CLOCK } from '@platform/time';
import type { Clock } from '@platform/time';
import request from 'supertest';
import { loadTaskServiceConfig } from '../src/config';
import { MIGRATIONS, SCHEMA, appRoleGrants } from '../src/database-layout';
import { taskService } from '../src/service-definition';

export const NAMESPACE = 'Platform.Contracts';
const SECRET = Buffer.from('a-secret-of-at-least-32-bytes-for-tests').toString('base64url');

/**
 * A task service with its own database and virtual hosts, connected with the role that it has in production.
 */
export interface TaskFixture {
  database: TestDatabase;
  /** The two buses, which are two virtual hosts here and may be two brokers in production. */
  brokers: { main: TestBroker; scheduling: TestBroker };
  auth: AuthServiceDouble;
  /** All replicas, with requests to each of them. `app` and `api` are the first one. */
  apps: NestFastifyApplication[];
  apis: ReturnType<typeof request>[];
  app: NestFastifyApplication;
  api: ReturnType<typeof request>;
  /**
   * Binds a queue to a message type, so that its messages are routed and can be read. Returns the name of the
   * queue.
   */
  watch(contract: MessageContract<unknown>): Promise<string>;
  /** Returns the messages published since `watch`, oldest first, once there are at least `count`. */
  received<T>(contract: MessageContract<T>, count: number): Promise<ReceivedEnvelope<T>[]>;
  /** Stops the first replica, runs `meanwhile`, and starts a replacement. */
  restart(meanwhile?: () => Promise<void>): Promise<void>;
  /** Connects another participant to a bus. */
  connect(bus: 'main' | 'scheduling'): Promise<PlainBus>;
  close(): Promise<void>;
}

interface ReceivedEnvelope<T> {
  messageId: string;
  conversationId: string;
  messageType: string[];
  message: T;
}

export interface TaskFixtureOptions {
  /** Maps the database URL to the one that the service uses, such as that of a proxy. */
  databaseUrl?: (url: string) => string | Promise<string>;
  mainUrl?: (url: string) => string | Promise<string>;
  schedulingUrl?: (url: string) => string | Promise<string>;
  env?: NodeJS.ProcessEnv;
  replicas?: number;
  /** Clock of the replicas. Default: the system clock. */
  clock?: Clock;
}

const same = (url: string): string => url;

export const migrate = sharedMigration('task_service', (ownerUrl, appRole) =>
  runMigrations(migrationSettings(ownerUrl), { appRole, appRoleGrants }),
);

export async function startTaskService(options: TaskFixtureOptions = {}): Promise<TaskFixture> {
  const database = await createTestDatabase({ migrate });
  const [main, scheduling] = await Promise.all([createTestBroker(), createTestBroker()]);
  const auth = await startAuthServiceDouble();
  const config = loadTaskServiceConfig({
    ...environment(auth.url),
    DATABASE_URL: await (options.databaseUrl ?? same)(database.url),
    RABBITMQ_MAIN_URL: await (options.mainUrl ?? same)(main.url),
    RABBITMQ_SCHEDULING_URL: await (options.schedulingUrl ?? same)(scheduling.url),
    ...options.env,
  });
  const startReplica = async (): Promise<NestFastifyApplication> => {
    const clock = options.clock ?? SYSTEM_CLOCK;
    const replica = await createServiceApplication({
      ...taskService(config),
      logSink: watchLog('task-service'),
      clock,
    });
    watchTraffic('task-service', replica.getHttpServer(), config.TASK_BASE_PATH);
    await replica.listen(0, '127.0.0.1');
    return replica;
  };
  const apiOf = async (replica: NestFastifyApplication): Promise<ReturnType<typeof request>> => {
    const api = request(await replica.getUrl());
    await eventually(() => api.get('/health/ready').expect(200), { timeoutMs: 20_000 });
    return api;
  };
  const apps: NestFastifyApplication[] = [];
  for (let index = 0; index < (options.replicas ?? 1); index += 1) apps.push(await startReplica());
  const apis = await Promise.all(apps.map(apiOf));
  const [app, api] = [apps[0] as NestFastifyApplication, apis[0] as ReturnType<typeof request>];
  const brokers = { main, scheduling };
  const buses: PlainBus[] = [];
  const fixture: TaskFixture = {
    database,
    brokers,
    auth,
    apps,
    apis,
    app,
    api,
    ...observer(brokers),
    async restart(meanwhile = () => Promise.resolve()) {
      await apps[0]?.close();
      await meanwhile();
      apps[0] = fixture.app = await startReplica();
      apis[0] = fixture.api = await apiOf(fixture.app);
    },
    connect: async (bus) => {
      const connected = await connectBus({ url: brokers[bus].url, name: 'neighbour', bus });
      buses.push(connected);
      return connected;
    },
    close: async () => {
      await Promise.all(buses.map((bus) => bus.close()));
      for (const replica of apps) await replica.close();
      await Promise.all([auth.close(), main.drop(), scheduling.drop()]);
      await database.drop();
    },
  };
  return fixture;
}

function observer(brokers: TaskFixture['brokers']): Pick<TaskFixture, 'watch' | 'received'> {
  const queueOf = ({ name }: MessageContract<unknown>): string => `test.${name}`;
  const seen = new Map<string, ReceivedEnvelope<unknown>[]>();
  return {
    watch: async (contract) => {
      const queue = queueOf(contract);
      await brokers[contract.bus].management.bindQueue(exchangeName(NAMESPACE, contract.name), queue);
      seen.set(queue, []);
      return queue;
    },
    received: async <T>(contract: MessageContract<T>, count: number) => {
      const queue = queueOf(contract);
      const messages = seen.get(queue) ?? [];
      return eventually(
        async () => {
          const fresh = await brokers[contract.bus].management.get(queue, 100_000);
          messages.push(...fresh.map(({ body }) => JSON.parse(body) as ReceivedEnvelope<unknown>));
          if (messages.length < count)
            throw new Error(`${String(messages.length)} of ${String(count)} messages`);
          return messages as ReceivedEnvelope<T>[];
        },
        { timeoutMs: 20_000 },
      );
    },
  };
}

/** Authorization headers by persona, with facilities 501 and 502 by default. */
export const PARTNER = bearer({
  sub: 'userid:9001',
  identityType: 'internal-legacy',
  userId: 9001,
  personId: undefined,
  name: 'Ivy Internal',
  personas: Persona.InternalPartner,
  facilities: [],
});
export const CUSTOMER = bearer({ personas: Persona.Customer });
export const OWNER = bearer({
  sub: 'personid:1002',
  personId: 1002,
  personas: Persona.Owner,
  facilities: [501],
});
export const RESIDENT = bearer({ personas: Persona.Resident });
export const SERVICE_PROVIDER = bearer({ personas: Persona.ServiceProvider });
export const NOBODY = bearer({ personas: Persona.None });

export function migrationSettings(url: string): Parameters<typeof runMigrations>[0] {
  return { url, schema: SCHEMA, applicationName: 'task-test', migrations: MIGRATIONS };
}

export function environment(authServiceUrl: string): NodeJS.ProcessEnv {
  return {
    NODE_ENV: 'test',
    PORT: '0',
    METRICS_PORT: '0',
    LOG_LEVEL: 'warn',
    ...authServiceVariables(authServiceUrl),
    CURSOR_HMAC_KEY: SECRET,
    REQUEST_TIMEOUT_MS: '5000',
  };
}
