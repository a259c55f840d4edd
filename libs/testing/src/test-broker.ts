export interface QueueState {
  messages: number;
  consumers: number;
}

export interface ReceivedMessage {
  body: string;
  headers: Record<string, unknown>;
  properties: Record<string, unknown>;
  redelivered: boolean;
}

/** The broker as its management API shows it. */
export interface BrokerManagement {
  /** Null when there is no such queue. */
  queue(name: string): Promise<QueueState | null>;
  queues(): Promise<string[]>;
  /** Null when there is no such exchange. */
  exchange(name: string): Promise<{ type: string; durable: boolean } | null>;
  /** Takes up to `count` messages from a queue. */
  get(queue: string, count: number): Promise<ReceivedMessage[]>;
  /** Publishes; true when at least one queue got the message. */
  publish(
    exchange: string,
    message: { body: string; routingKey?: string; properties?: Record<string, unknown> },
  ): Promise<boolean>;
  /** Declares a queue bound to a fanout exchange (made if missing), to see what is published there. */
  bindQueue(exchange: string, queue: string): Promise<void>;
}

/** A virtual host of its own for one suite. */
export interface TestBroker {
  url: string;
  vhost: string;
  management: BrokerManagement;
  drop(): Promise<void>;
}

/** A virtual host with a random name on the broker of TEST_RABBITMQ_URL. */
export async function createTestBroker(): Promise<TestBroker> {
  throw new Error('not yet');
}
