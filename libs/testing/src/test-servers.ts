import { randomBytes } from 'node:crypto';
import { BrokerManagement } from '#platform/broker-management.ts';
import type { Postgresql } from '#platform/postgresql.ts';
import { makePostgresql, makeRabbitmq, openTemporaryPlace, testVariable } from '#platform/private-servers.ts';
import type { Rabbitmq } from '#platform/rabbitmq.ts';

/** A virtual host of its own for one suite. */
export interface TestBroker {
  /** AMQP address of the virtual host. */
  url: string;
  vhost: string;
  management: BrokerManagement;
  /** Removes the virtual host with everything in it. */
  drop(): Promise<void>;
}

/** Where a broker and its management API are. */
export interface BrokerAddresses {
  readonly url: string;
  readonly managementUrl: string;
}

/** A virtual host with a random name on `server`, or on the broker of TEST_RABBITMQ_URL. Call `drop()` when done. */
export async function createTestBroker(server: BrokerAddresses = testServer()): Promise<TestBroker> {
  const url = new URL(server.url);
  const vhost = `test-${randomBytes(8).toString('hex')}`;
  const management = new BrokerManagement(server.managementUrl, vhost);
  await management.createVhost();
  url.pathname = `/${vhost}`;
  return { url: url.toString(), vhost, management, drop: () => management.deleteVhost() };
}

function testServer(): BrokerAddresses {
  return {
    url: testVariable('TEST_RABBITMQ_URL'),
    managementUrl: testVariable('TEST_RABBITMQ_MANAGEMENT_URL'),
  };
}

/** A PostgreSQL of one suite's own, made to be crashed. It flushes as in production: what it acknowledged is on the disk. */
export class PrivatePostgresql {
  private constructor(
    private readonly server: Postgresql,
    /** Ends it and removes its data. */
    readonly stop: () => Promise<void>,
  ) {}

  static async start(): Promise<PrivatePostgresql> {
    const place = await openTemporaryPlace();
    const server = await makePostgresql(place, true);
    await server.start();
    return new PrivatePostgresql(server, () => place.supervisor.stop());
  }

  /** Its superuser's address; the same after every restart. */
  get url(): string {
    return this.server.url;
  }

  /** Ends every process of it with SIGKILL. */
  crash(): Promise<void> {
    return this.server.crash();
  }

  /** Starts it again after a crash, on the same data and port; it recovers before it lets anybody in. */
  restart(): Promise<void> {
    return this.server.start();
  }
}

/** A RabbitMQ of one suite's own, made to be stopped, crashed and run out of memory. */
export class PrivateRabbitmq {
  private constructor(
    private readonly server: Rabbitmq,
    /** Ends it and removes its data. */
    readonly stop: () => Promise<void>,
  ) {}

  static async start(): Promise<PrivateRabbitmq> {
    const place = await openTemporaryPlace();
    const server = await makeRabbitmq(place);
    await server.start();
    return new PrivateRabbitmq(server, () => place.supervisor.stop());
  }

  /** Its AMQP address, without a virtual host; the same after every restart. */
  get url(): string {
    return this.server.url;
  }

  get managementUrl(): string {
    return this.server.managementUrl;
  }

  /** Ends it in order. */
  shutDown(): Promise<void> {
    return this.server.end('SIGTERM');
  }

  /** Ends every process of it with SIGKILL. */
  crash(): Promise<void> {
    return this.server.end('SIGKILL');
  }

  /** Starts it again after its end, on the same data and ports. */
  restart(): Promise<void> {
    return this.server.start();
  }

  /** Raises its memory alarm: it takes no further message, and says so to whoever publishes one. */
  block(): Promise<void> {
    // Every broker uses more than one byte. It sees the new limit at once.
    return this.server.control('set_vm_memory_high_watermark', 'absolute', '1');
  }

  /** Clears its memory alarm. */
  unblock(): Promise<void> {
    return this.server.control('set_vm_memory_high_watermark', '0.4');
  }
}
