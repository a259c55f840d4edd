import { randomBytes } from 'node:crypto';
import { BrokerManagement } from '#platform/broker-management.ts';
import type { Postgresql } from '#platform/postgresql.ts';
import { makePostgresql, makeRabbitmq, openTemporaryPlace, testVariable } from '#platform/private-servers.ts';
import type { Rabbitmq } from '#platform/rabbitmq.ts';
import type { ServerPlace } from '#platform/supervisor.ts';

/** A separate virtual host for one suite. */
export interface TestBroker {
  /** AMQP address of the virtual host. */
  url: string;
  vhost: string;
  management: BrokerManagement;
  /** Deletes the virtual host with everything in it. */
  drop(): Promise<void>;
}

/** Addresses of a broker and its management API. */
export interface BrokerAddresses {
  readonly url: string;
  readonly managementUrl: string;
}

/** Creates a virtual host with a random name on the broker of TEST_RABBITMQ_URL. Call `drop()` when done. */
export async function createTestBroker(): Promise<TestBroker> {
  const url = new URL(testVariable('TEST_RABBITMQ_URL'));
  const vhost = `test-${randomBytes(8).toString('hex')}`;
  const management = new BrokerManagement(testVariable('TEST_RABBITMQ_MANAGEMENT_URL'), vhost);
  await management.createVhost();
  url.pathname = `/${vhost}`;
  return { url: url.toString(), vhost, management, drop: () => management.deleteVhost() };
}

/** A private server of one suite, which the suite may break. It restarts on the same data and ports. */
export interface PrivateServer<S> {
  readonly server: S;
  /** Stops the server and deletes its data. */
  readonly stop: () => Promise<void>;
}

/**
 * Starts a PostgreSQL that flushes to disk as in production, so that acknowledged commits survive a crash.
 */
export function startPrivatePostgresql(): Promise<PrivateServer<Postgresql>> {
  return startPrivate((place) => makePostgresql(place, true));
}

export function startPrivateRabbitmq(): Promise<PrivateServer<Rabbitmq>> {
  return startPrivate(makeRabbitmq);
}

async function startPrivate<S extends Postgresql | Rabbitmq>(
  make: (place: ServerPlace) => Promise<S>,
): Promise<PrivateServer<S>> {
  const place = await openTemporaryPlace();
  const server = await make(place);
  await server.start();
  return { server, stop: () => place.supervisor.stop() };
}
