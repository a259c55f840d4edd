import { addressesOf, sessionAttributes } from '@platform/service-defaults';
import { SECOND_MS, SYSTEM_CLOCK } from '@platform/time';
import { Pool, Client } from 'pg';
import type { ClientConfig, PoolClient, PoolConfig } from 'pg';
import { DatabaseUnavailableError, isConnectionError } from './errors';

/** How long a connection has for its goodbye. */
const END_LIMIT_MS = 100;

/**
 * With `pipeline` pg waits for a statement that is under way, however long it takes. A process that has to
 * stop cannot.
 */
class EndingClient extends Client {
  override end(): Promise<void>;
  override end(callback: (error: Error) => void): void;
  override end(callback?: (error: Error) => void): unknown {
    setTimeout(() => this.connection.stream.destroy(), END_LIMIT_MS).unref();
    return callback === undefined ? super.end() : void super.end(callback);
  }
}

/** One server of a database that has several. */
class Host {
  /** Private, because it holds a password, and clients are shown in logs. */
  readonly #address: string;
  /** When no connection could be opened there; `-Infinity` when the last one could. */
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

/** A host where no connection could be opened, a standby for example, is asked last for so long. */
const FAILURE_REMEMBERED_MS = 60 * SECOND_MS;
/**
 * After so long without a connection's return, a new one is opened to see whether its server is still there.
 */
const BUSY_MS = 1.5 * SECOND_MS;
const CONNECT_TIMEOUT_MS = 3 * SECOND_MS;
const SQLSTATE = /^[0-9A-Z]{5}$/;
/** What a server (PostgreSQL 14 or later) says of itself when a session opens, and when it changes. */
const READ_ONLY_PARAMETERS: ReadonlySet<unknown> = new Set([
  'in_hot_standby',
  'default_transaction_read_only',
]);

/** One client for work outside of a pool, at the first host that will have it. */
export async function connectClient(url: string, config: ClientConfig): Promise<Client> {
  return new Hosts(addressesOf(url)).connect({ ...config, connectionString: url });
}

/**
 * A pool over the hosts of one database, as libpq chooses among them: a new connection goes to any of those
 * that did not fail lately, else to the next. With `target_session_attrs=read-write` a standby is one that
 * fails. A server that stands still with connections in use is left.
 */
export class HostsPool extends Pool {
  private readonly hosts: Hosts;
  private readonly open = new Set<HostClient>();

  /** @param addresses one per host */
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
   * Runs a statement that must not wait for others. While all connections are in use it gets one of its own,
   * for this statement only.
   */
  async queryAtOnce<Row extends object>(text: string): Promise<Row[]> {
    const isFree = this.idleCount > 0 || this.totalCount < this.options.max;
    if (isFree) return (await this.query<Row>(text)).rows;
    const client = await this.hosts.connect(this.options);
    // The statement fails too when the connection is lost.
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
    // A probe under way must not have it watched on.
    client.watchdog = undefined;
  }

  private async check(client: HostClient, watchdog: NodeJS.Timeout): Promise<void> {
    if (!(await this.hosts.isAnswering(client.chosen, this.options)))
      for (const { chosen, connection } of this.open)
        if (chosen === client.chosen)
          connection.stream.destroy(new DatabaseUnavailableError('the server does not respond'));
    // Else it is given back by now, or even taken again.
    if (client.watchdog === watchdog && this.open.has(client)) this.watch(client);
  }
}

/** Waiting in vain for a connection of the pool says nothing about the host. */
function isHostFailure(error: unknown): boolean {
  return (
    isConnectionError(error) && !(error as Error).message.includes('timeout exceeded when trying to connect')
  );
}

class Hosts {
  private readonly hosts: readonly Host[];
  /** A client of the host that is to be tried next. */
  readonly Client: new (config?: ClientConfig) => EndingClient;

  constructor(addresses: readonly string[]) {
    this.hosts = addresses.map((address) => new Host(address));
    const needsWrites = addresses.some((address) => sessionAttributes(address) === 'read-write');
    const choose = (): Host => this.choose();
    const ChosenClient = class extends HostClient {
      constructor(config: ClientConfig = {}) {
        super(config, choose(), needsWrites);
      }
    };
    this.Client = this.count === 1 && !needsWrites ? EndingClient : ChosenClient;
  }

  get count(): number {
    return this.hosts.length;
  }

  /** A client outside of the pool, at the first host that will have it. */
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

  /** Whether the host's server still opens or refuses sessions. One that only stands still does neither. */
  isAnswering(host: Host, config: ClientConfig): Promise<boolean> {
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
    const sinceMs = SYSTEM_CLOCK.monotonicMs() - FAILURE_REMEMBERED_MS;
    const failedAt = (host: Host): number => (host.failedAtMs > sinceMs ? host.failedAtMs : -Infinity);
    const longestAgo = Math.min(...this.hosts.map(failedAt));
    const candidates = this.hosts.filter((host) => failedAt(host) === longestAgo);
    return candidates[Math.floor(Math.random() * candidates.length)]!;
  }
}

/** A connection to a host that was chosen for it. */
class HostClient extends EndingClient {
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
