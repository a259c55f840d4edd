import { randomBytes } from 'node:crypto';
import { BrokerManagement } from '#platform/broker-management.ts';
import { testVariable } from '#platform/private-servers.ts';

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
