import { setTimeout as delay } from 'node:timers/promises';

/** Numbers of messages and consumers of a queue; they lag by up to 5 s. */
export interface QueueState {
  messages: number;
  consumers: number;
}

/** The declaration of a queue, and its number of messages. */
export interface QueueDeclaration {
  name: string;
  type: string;
  messages?: number;
  durable: boolean;
  exclusive: boolean;
  arguments: Record<string, unknown>;
}

/**
 * Settings that connections negotiated and that consumers requested. Where the prefetch limit is set for a
 * whole channel, the `prefetch_count` of its consumers is 0.
 */
export interface ClientSettings {
  connections: { frame_max: number; user_provided_name?: string }[];
  consumers: { prefetch_count: number }[];
}

export interface ReceivedMessage {
  body: string;
  exchange: string;
  routingKey: string;
  headers: Record<string, unknown>;
  properties: Record<string, unknown>;
  redelivered: boolean;
}

export interface OutgoingMessage {
  body: string;
  routingKey?: string;
  /** AMQP properties in the management API's spelling, e.g. `content_type`, `message_id`, `headers`. */
  properties?: Record<string, unknown>;
}

interface ManagementMessage {
  payload: string;
  exchange: string;
  routing_key: string;
  redelivered: boolean;
  properties: Record<string, unknown> & { headers?: Record<string, unknown> };
}

/** Maximum wait until a quorum queue has a leader, in ms. */
const LEADER_MS = 5_000;
/** The management API's error text for a negative confirm. */
const REFUSED = 'rejected Unable to publish message';

/** A virtual host of a broker, through the broker's management API. */
export class BrokerManagement {
  private readonly authorization: string;
  private readonly origin: string;
  private readonly vhost: string;

  constructor(managementUrl: string, vhost: string) {
    this.vhost = vhost;
    const url = new URL(managementUrl);
    const user = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
    this.authorization = `Basic ${Buffer.from(user).toString('base64')}`;
    this.origin = url.origin;
  }

  /** Returns null if there is no such queue. */
  async queue(name: string): Promise<QueueState | null> {
    const found = await this.find<Partial<QueueState>>(`queues/${this.scope}/${encodeURIComponent(name)}`);
    return found === null ? null : { messages: found.messages ?? 0, consumers: found.consumers ?? 0 };
  }

  async queues(): Promise<string[]> {
    const queues = await this.send<{ name: string }[]>('GET', `queues/${this.scope}`);
    return queues.map(({ name }) => name).sort();
  }

  /** Returns the declarations of all queues of the virtual host, with their numbers of messages. */
  queueDeclarations(): Promise<QueueDeclaration[]> {
    return this.send('GET', `queues/${this.scope}`);
  }

  /**
   * Returns the current number of messages in each queue. The other methods read statistics, which lag, and
   * which may persist for ever after the node that reported them is gone.
   */
  queueTotals(): Promise<{ name: string; type: string; messages?: number }[]> {
    return this.send('GET', `queues/${this.scope}?disable_stats=true&enable_queue_totals=true`);
  }

  /** Returns the connections to the virtual host and their consumers. They lag by up to 5 s. */
  async clientSettings(): Promise<ClientSettings> {
    return {
      connections: await this.send('GET', `vhosts/${this.scope}/connections`),
      consumers: await this.send('GET', `consumers/${this.scope}`),
    };
  }

  /** Returns null if there is no such exchange. */
  async exchange(name: string): Promise<{ type: string; durable: boolean } | null> {
    return this.find(`exchanges/${this.scope}/${encodeURIComponent(name)}`);
  }

  /** Takes up to `count` messages from a queue, oldest first. */
  async get(queue: string, count: number): Promise<ReceivedMessage[]> {
    const path = `queues/${this.scope}/${encodeURIComponent(queue)}/get`;
    const body = { count, ackmode: 'ack_requeue_false', encoding: 'auto' };
    const messages = await this.send<ManagementMessage[]>('POST', path, body);
    return messages.map((message) => ({
      body: message.payload,
      exchange: message.exchange,
      routingKey: message.routing_key,
      headers: message.properties.headers ?? {},
      properties: message.properties,
      redelivered: message.redelivered,
    }));
  }

  /**
   * Publishes a message. Returns true if at least one queue got it. With an empty exchange name the routing
   * key is the queue's name. A quorum queue without a leader refuses messages (a negative confirm), so
   * publishing is retried for up to 5 s.
   */
  async publish(
    exchange: string,
    { body, routingKey = '', properties = {} }: OutgoingMessage,
  ): Promise<boolean> {
    const path = `exchanges/${this.scope}/${encodeURIComponent(exchange === '' ? 'amq.default' : exchange)}/publish`;
    const message = { routing_key: routingKey, payload: body, payload_encoding: 'string', properties };
    const deadline = performance.now() + LEADER_MS;
    for (;;) {
      const response = await this.request('POST', path, message);
      const isRefused = response.status === 400 && (await response.clone().text()).includes(REFUSED);
      if (!isRefused || performance.now() >= deadline)
        return (await read<{ routed: boolean }>(response, path)).routed;
      await delay(20);
    }
  }

  /**
   * Declares a queue bound to a durable fanout exchange (created if missing), to collect the messages
   * published there.
   */
  async bindQueue(exchange: string, queue: string): Promise<void> {
    const [exchangeName, queueName] = [exchange, queue].map(encodeURIComponent);
    await this.send('PUT', `exchanges/${this.scope}/${exchangeName}`, { type: 'fanout', durable: true });
    await this.send('PUT', `queues/${this.scope}/${queueName}`, { durable: true });
    await this.send('POST', `bindings/${this.scope}/e/${exchangeName}/q/${queueName}`, { routing_key: '' });
  }

  /** Returns the alarms of the broker's nodes, a few seconds old. */
  nodes(): Promise<{ mem_alarm: boolean; disk_free_alarm: boolean }[]> {
    return this.send('GET', 'nodes');
  }

  /**
   * Returns the broker's version and its numbers of connections, channels, consumers, queues and exchanges, a
   * few seconds old.
   */
  overview(): Promise<{ rabbitmq_version: string; object_totals: Record<string, number> }> {
    return this.send('GET', 'overview');
  }

  async version(): Promise<string> {
    return (await this.overview()).rabbitmq_version;
  }

  /** Creates the virtual host and grants the user of the management URL all rights on it. */
  async createVhost(): Promise<void> {
    const user =
      Buffer.from(this.authorization.slice('Basic '.length), 'base64').toString().split(':', 1)[0] ?? '';
    await this.send('PUT', `vhosts/${this.scope}`);
    const everything = { configure: '.*', write: '.*', read: '.*' };
    await this.send('PUT', `permissions/${this.scope}/${encodeURIComponent(user)}`, everything);
  }

  /** Removes the virtual host with everything in it; connections to it are closed. */
  async deleteVhost(): Promise<void> {
    await this.send('DELETE', `vhosts/${this.scope}`);
  }

  /** Closes every connection to the virtual host, as an operator would. */
  async closeConnections(): Promise<void> {
    const connections = await this.send<{ name: string }[]>('GET', `vhosts/${this.scope}/connections`);
    for (const { name } of connections) await this.send('DELETE', `connections/${encodeURIComponent(name)}`);
  }

  private get scope(): string {
    return encodeURIComponent(this.vhost);
  }

  private async find<T>(path: string): Promise<T | null> {
    const response = await this.request('GET', path);
    if (response.status === 404) return null;
    return read<T>(response, path);
  }

  private async send<T>(method: string, path: string, body?: object): Promise<T> {
    return read<T>(await this.request(method, path, body), path);
  }

  private request(method: string, path: string, body?: object): Promise<Response> {
    const headers = { authorization: this.authorization, 'content-type': 'application/json' };
    const payload = body === undefined ? {} : { body: JSON.stringify(body) };
    return fetch(`${this.origin}/api/${path}`, { method, headers, ...payload });
  }
}

async function read<T>(response: Response, path: string): Promise<T> {
  const text = await response.text();
  if (!response.ok) throw new Error(`broker management responded ${response.status} to ${path}: ${text}`);
  return (text === '' ? undefined : JSON.parse(text)) as T;
}
