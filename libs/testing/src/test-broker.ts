import { randomBytes } from 'node:crypto';
import { BrokerManagement } from './broker-management';
import { testVariable } from './environment';

/** A virtual host of its own for one suite. */
export interface TestBroker {
  /** AMQP address of the virtual host. */
  url: string;
  vhost: string;
  management: BrokerManagement;
  /** Removes the virtual host with everything in it. */
  drop(): Promise<void>;
}

/** A virtual host with a random name on the broker of TEST_RABBITMQ_URL. Call `drop()` when done. */
export async function createTestBroker(): Promise<TestBroker> {
  const url = new URL(testVariable('TEST_RABBITMQ_URL'));
  const vhost = `test-${randomBytes(8).toString('hex')}`;
  const management = new BrokerManagement(testVariable('TEST_RABBITMQ_MANAGEMENT_URL'), vhost);
  await management.createVhost();
  url.pathname = `/${vhost}`;
  return { url: url.toString(), vhost, management, drop: () => management.deleteVhost() };
}
