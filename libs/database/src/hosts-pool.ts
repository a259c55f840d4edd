import { addressesOf, sessionAttributes } from '@platform/service-defaults';
import { SECOND_MS, SYSTEM_CLOCK } from '@platform/time';
import { Pool, Client } from 'pg';
import type { ClientConfig, PoolClient, PoolConfig } from 'pg';
import { DatabaseUnavailableError, isConnectionError } from './errors';

/** Maximum time for the orderly close of a connection. */
const END_TIMEOUT_MS = 100;

/**
 * A client whose `end` closes the socket after at most 100 ms. With `pipeline`, pg would wait for a running
 * statement, however long it takes, and a process that is stopping cannot wait.
 */
class PromptClient extends Client {
  override end(): Promise<void>;
  override end(callback: (error: Error) => void): void;
  override end(callback?: (error: Error) => void): unknown {
    setTimeout(() => this.connection.stream.destroy(), END_TIMEOUT_MS).unref();
    return callback === undefined ? super.end() : void super.end(callback);
  }
}

/** One host of a database. */
class Host {
  /** Private, because it holds a password and clients may appear in logs. */
  readonly #address: string;
  /**
   * Monotonic time in milliseconds of the last failure to connect; `-Infinity` once a connection has
   * succeeded.
   */
  failedAtMs = -Infinity;
  probe: Promise<boolean> | null = null;

  constructor(address: string) {
    this.#address = address;
  }

  get address(): string {
    return this.#address;
  }
}

type ConnectCallback = (
  error: Error | undefined,
  client: PoolClient | undefined,
  done: (release?: unknown) => void,
) => void;

/** Time for which a host that refused a connection (a standby, for example) is tried last. */
const FAILURE_EXPIRY_MS = 60 * SECOND_MS;
/** Time after which the server of a connection in use is probed, by opening another connection to it. */
const BUSY_MS = 1.5 * SECOND_MS;
const CONNECT_TIMEOUT_MS = 3 * SECOND_MS;
const SQLSTATE = /^[0-9A-Z]{5}$/;
/**
 * Parameters by which a server (PostgreSQL 14 or later) reports that it is read-only, when a session opens
 * and on each change.
 */
const READ_ONLY_PARAMETERS: ReadonlySet<unknown> = new Set([
  'in_hot_standby',
  'default_transaction_read_only',
]);

/** Connects one client outside a pool, to the first host that accepts it. */
export async function connectClient(url: string, config: ClientConfig): Promise<Client> {
  return new Hosts(addressesOf(url)).connect({ ...config, connectionString: url });
}

/**
 * A pool of connections to the hosts of one database. Chooses the host of a new connection as libpq does: a
 * random one among those that did not fail within the last 60 s, or else the one that failed longest ago. If
 * the connection fails, the next host is tried. With `target_session_attrs=read-write` a standby counts as
 * failed. When a server with connections in use stops responding, its connections are closed.
 */
export class HostsPool extends Pool {
  private readonly hosts: Hosts;
  private readonly open = new Set<HostClient>();

  /** @param addresses one URL per host */
  constructor(config: PoolConfig, addresses: readonly string[]) {
    const hosts = new Hosts(addresses);
    super({ ...config, Client: hosts.Client });
    this.hosts = hosts;
    if (hosts.count === 1) return;
    this.on('connect', (client) => this.open.add(client as unknown as HostClient));
    this.on('remove', (client) => this.open.delete(client as unknown as HostClient));
    this.on('acquire', (client) => this.watch(client as unknown as HostClient));
    this.on('release', (_error, client) => this.unwatch(client as unknown as HostClient));
  }

  /**
   * Runs a statement that must not wait for others. If all connections are in use, it opens one for this
   * statement only.
   */
  async queryAtOnce<Row extends object>(text: string): Promise<Row[]> {
    const isFree = this.idleCount > 0 || this.totalCount < this.options.max;
    if (isFree) return (await this.query<Row>(text)).rows;
    const client = await this.hosts.connect(this.options);
    // Without a listener a lost connection would end the process. The statement fails anyway.
    client.on('error', () => undefined);
    try {
      return (await client.query<Row>(text)).rows;
    } finally {
      await client.end();
    }
  }

  override connect(): Promise<PoolClient>;
  override connect(callback: ConnectCallback): void;
  override connect(callback?: ConnectCallback): unknown {
    if (this.hosts.count === 1) return callback === undefined ? super.connect() : super.connect(callback);
    let connected = super.connect();
    for (let other = 1; other < this.hosts.count; other += 1)
      connected = connected.catch((error: unknown) => {
        if (!isHostFailure(error)) throw error;
        return super.connect();
      });
    if (callback === undefined) return connected;
    return void connected.then(
      (client) => callback(undefined, client, (error) => client.release(error as Error | undefined)),
      (error: unknown) => callback(error as Error, undefined, () => undefined),
    );
  }

  private watch(client: HostClient): void {
    const watchdog = setTimeout(() => void this.check(client, watchdog), BUSY_MS).unref();
    client.watchdog = watchdog;
  }

  private unwatch(client: HostClient): void {
    clearTimeout(client.watchdog);
    // A probe in flight must not start to watch the client again.
    client.watchdog = undefined;
  }

  private async check(client: HostClient, watchdog: NodeJS.Timeout): Promise<void> {
    if (!(await this.hosts.isResponding(client.chosen, this.options)))
      for (const { chosen, connection } of this.open)
        if (chosen === client.chosen)
          connection.stream.destroy(new DatabaseUnavailableError('the server does not respond'));
    // Continue to watch, unless the client was released during the probe (and perhaps acquired again).
    if (client.watchdog === watchdog && this.open.has(client)) this.watch(client);
  }
}

/**
 * Whether the host failed. A timeout while waiting for a free connection of the pool is not the host's
 * failure.
 */
function isHostFailure(error: unknown): boolean {
  return (
    isConnectionError(error) && !(error as Error).message.includes('timeout exceeded when trying to connect')
  );
}

class Hosts {
  private readonly hosts: readonly Host[];
  /** The client class for the pool: each instance connects to the host to be tried next. */
  readonly Client: new (config?: ClientConfig) => PromptClient;

  constructor(addresses: readonly string[]) {
    this.hosts = addresses.map((address) => new Host(address));
    const needsWrites = addresses.some((address) => sessionAttributes(address) === 'read-write');
    const choose = (): Host => this.choose();
    const ChosenClient = class extends HostClient {
      constructor(config: ClientConfig = {}) {
        super(config, choose(), needsWrites);
      }
    };
    this.Client = this.count === 1 && !needsWrites ? PromptClient : ChosenClient;
  }

  get count(): number {
    return this.hosts.length;
  }

  /** Connects a client outside the pool, to the first host that accepts it. */
  async connect(config: ClientConfig): Promise<Client> {
    for (let attempt = 1; ; attempt += 1) {
      const client = new this.Client(config);
      try {
        await client.connect();
        return client;
      } catch (error) {
        if (attempt === this.count || !isConnectionError(error)) throw error;
      }
    }
  }

  /** Whether the host's server still opens or refuses sessions. A frozen server does neither. */
  isResponding(host: Host, config: ClientConfig): Promise<boolean> {
    host.probe ??= this.probe(host, config).finally(() => {
      host.probe = null;
    });
    return host.probe;
  }

  private async probe(host: Host, config: ClientConfig): Promise<boolean> {
    const client = new HostClient({ ...config, connectionTimeoutMillis: CONNECT_TIMEOUT_MS }, host, false);
    try {
      await client.connect();
      await client.end();
      return true;
    } catch (error) {
      return SQLSTATE.test(String((error as { code?: unknown }).code));
    }
  }

  private choose(): Host {
    const sinceMs = SYSTEM_CLOCK.monotonicMs() - FAILURE_EXPIRY_MS;
    const failedAt = (host: Host): number => (host.failedAtMs > sinceMs ? host.failedAtMs : -Infinity);
    const oldestFailure = Math.min(...this.hosts.map(failedAt));
    const candidates = this.hosts.filter((host) => failedAt(host) === oldestFailure);
    return candidates[Math.floor(Math.random() * candidates.length)]!;
  }
}

/** A connection to the host that was chosen for it. */
class HostClient extends PromptClient {
  watchdog: NodeJS.Timeout | undefined;
  readonly chosen: Host;
  private readonly needsWrites: boolean;
  private isReadOnly = false;

  constructor(config: ClientConfig, chosen: Host, needsWrites: boolean) {
    super({ ...config, connectionString: chosen.address });
    this.chosen = chosen;
    this.needsWrites = needsWrites;
    this.connection.on('parameterStatus', (status: { parameterName: string; parameterValue: string }) => {
      if (READ_ONLY_PARAMETERS.has(status.parameterName)) this.isReadOnly ||= status.parameterValue === 'on';
    });
  }

  override connect(): Promise<this>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): unknown {
    if (callback === undefined)
      return new Promise((resolve, reject) => {
        this.connect((error: Error | null) => (error === null ? resolve(this) : reject(error)));
      });
    return super.connect((failure: Error) => {
      const isRefused = !failure && this.needsWrites && this.isReadOnly;
      if (isRefused) this.end(() => undefined);
      const error = isRefused ? new DatabaseUnavailableError('the server takes no writes') : failure;
      this.chosen.failedAtMs = isConnectionError(error) ? SYSTEM_CLOCK.monotonicMs() : -Infinity;
      callback(error);
    });
  }
}
