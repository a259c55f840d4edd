import { randomUUID } from 'node:crypto';
import type { Writable } from 'node:stream';
import { AmqpConnection } from '@golevelup/nestjs-rabbitmq';
import type { LoggerService } from '@nestjs/common';
import type { Bus } from '@platform/contracts';
import { shuffledAddressesOf } from '@platform/service-defaults';
import { type Clock, SECOND_MS, withTimeout } from '@platform/time';
import type { Channel, ChannelModel, ConfirmChannel } from 'amqplib';
import { hostAddress } from '../envelope/address';
import { type EnvelopeOptions, hostInfo } from '../envelope/create-envelope';
import { messageTraceHeaders } from '../envelope/message-trace';
import { BusUnavailableError } from './broker-errors';
import { guardHeaders } from './header-guard';

export interface BusConnectionOptions {
  readonly bus: Bus;
  /** AMQP URL; may name several hosts. It holds a password, so it must never reach a log or an error. */
  readonly url: string;
  /**
   * Name of this program, used in envelopes, in reply queue names and as the connection's name at the broker.
   */
  readonly service: string;
  /** Version of this program, written into envelopes. */
  readonly version: string;
  /** Namespace of the message types, e.g. `Platform.Contracts`. */
  readonly namespace: string;
  readonly logger: LoggerService;
  readonly clock: Clock;
}

/**
 * A channel that golevelup's connection manager sets up as soon as there is a connection, and again after
 * each reconnect.
 */
export type ManagedChannel = AmqpConnection['managedChannel'];

/**
 * Limits of a connection. A single broker is given more time. With several brokers, one that is silent for 4
 * to 6 s is given up, and the next one is tried.
 */
const ONE_BROKER = { heartbeatSeconds: 5, connectTimeoutMs: 5 * SECOND_MS, reconnectSeconds: 1 };
const SEVERAL_BROKERS = { heartbeatSeconds: 2, connectTimeoutMs: 2 * SECOND_MS, reconnectSeconds: 0.2 };
const CLOSE_TIMEOUT_MS = 5 * SECOND_MS;

/**
 * One golevelup connection to one bus. golevelup connects and reconnects; the owner of a channel recovers
 * that channel.
 */
export class BusConnection {
  /** The broker's MassTransit address, without credentials. */
  readonly hostAddress: string;
  private readonly host: Readonly<Record<string, unknown>>;
  private readonly amqp: AmqpConnection;
  private blockedReason: string | null = null;
  private isReportedDown = false;

  /** @throws {Error} if the URL is not an AMQP URL */
  constructor(readonly options: BusConnectionOptions) {
    const { bus, url, service, version, logger } = options;
    this.hostAddress = hostAddress(url);
    this.host = hostInfo(service, version);
    const urls = shuffledAddressesOf(url);
    const limits = urls.length > 1 ? SEVERAL_BROKERS : ONE_BROKER;
    this.amqp = new AmqpConnection({
      name: bus,
      uri: urls,
      enableDirectReplyTo: false,
      logger: demoteToDebug(logger),
      connectionInitOptions: {
        wait: false,
        skipConnectionFailedLogging: true,
        skipDisconnectFailedLogging: true,
      },
      connectionManagerOptions: {
        heartbeatIntervalInSeconds: limits.heartbeatSeconds,
        reconnectTimeInSeconds: limits.reconnectSeconds,
        connectionOptions: {
          timeout: limits.connectTimeoutMs,
          noDelay: true,
          clientProperties: { connection_name: `${service} (${bus})` },
        },
      },
    });
  }

  /**
   * Returns the options of an envelope that this process sends. Each value that is not given has a default: a
   * random message id, the current time, the current trace.
   */
  envelopeOptions(
    given: { messageId?: string | undefined; sentAt?: Date; headers?: EnvelopeOptions['headers'] } = {},
  ): EnvelopeOptions {
    const { messageId = randomUUID(), sentAt = this.options.clock.now() } = given;
    const { headers = messageTraceHeaders() } = given;
    const { service: source, namespace } = this.options;
    const { hostAddress, host } = this;
    return { namespace, messageId, sentAt, source, hostAddress, host, headers };
  }

  /** Starts to connect and returns at once, so that a service starts without its broker. */
  async open(): Promise<void> {
    await this.amqp.init();
    const manager = this.amqp.managedConnection;
    manager.on('connect', () => this.onConnected());
    manager.on('disconnect', ({ err }: { err?: Error }) => this.onDown(err));
    manager.on('connectFailed', ({ err }: { err?: Error }) => this.onDown(err));
    manager.on('blocked', ({ reason }) => {
      this.blockedReason = reason;
      this.options.logger.warn(`bus ${this.options.bus} is blocked by the broker: ${reason}`);
    });
    manager.on('unblocked', () => {
      this.blockedReason = null;
    });
  }

  /** Whether messages can be sent now. */
  get isUsable(): boolean {
    return this.amqp.managedConnection?.isConnected() === true && this.blockedReason === null;
  }

  /**
   * @throws {BusUnavailableError} if not connected, or while the broker blocks the connection: a message
   * written then would only wait in memory
   */
  requireUsable(): void {
    if (this.isUsable) return;
    const { blockedReason } = this;
    throw new BusUnavailableError(
      this.options.bus,
      blockedReason === null ? 'not connected' : `blocked, ${blockedReason}`,
    );
  }

  /**
   * Opens a channel for publishing.
   * @throws {BusUnavailableError} if the connection is not usable, or is lost while the channel opens
   */
  async openConfirmChannel(): Promise<ConfirmChannel> {
    this.requireUsable();
    try {
      const channel = await this.amqp.managedConnection.connection?.createConfirmChannel();
      if (channel !== undefined) return channel;
    } catch (error) {
      throw new BusUnavailableError(this.options.bus, 'no channel could be opened', { cause: error });
    }
    throw new BusUnavailableError(this.options.bus, 'not connected');
  }

  /**
   * Returns a channel for consuming, set up now or as soon as there is a connection. If `setup` fails, the
   * channel emits `error`.
   */
  manageChannel(name: string, setup: (channel: Channel) => Promise<void>): ManagedChannel {
    return this.amqp.managedConnection.createChannel({ name, confirm: false, setup });
  }

  /** Closes the connection. Waits at most 5 s, so that a broker that hangs cannot keep the process alive. */
  async close(): Promise<void> {
    try {
      // Not `amqp.close()`: that waits for a channel first, so with a broker that hangs it would never stop
      // the reconnects.
      const closing = this.amqp.managedConnection?.close() ?? Promise.resolve();
      const timeoutError = (): Error => new Error(`not closed within ${CLOSE_TIMEOUT_MS} ms`);
      await withTimeout(closing, CLOSE_TIMEOUT_MS, timeoutError);
    } catch (error) {
      this.options.logger.debug?.(`closing bus ${this.options.bus}: ${String(error)}`);
    }
  }

  private onConnected(): void {
    batchWrites(this.amqp.managedConnection.connection);
    guardHeaders(this.amqp.managedConnection.connection);
    this.blockedReason = null;
    this.isReportedDown = false;
    this.options.logger.log(`bus ${this.options.bus} is connected`);
  }

  private onDown(error: Error | undefined): void {
    this.blockedReason = null;
    // Log once per outage, not once per reconnect attempt.
    if (this.isReportedDown) return;
    this.isReportedDown = true;
    this.options.logger.warn(`bus ${this.options.bus} is down: ${error?.message ?? 'closed'}; reconnecting`);
  }
}

/** The private parts of amqplib's connection that write to the socket. */
interface SocketWriter {
  readonly stream: Writable;
  readonly muxer: { _readIncoming(): void };
}

/**
 * Writes all messages of one event-loop turn in one system call. amqplib writes each message separately and
 * has no option to batch them.
 */
function batchWrites(model: ChannelModel | undefined): void {
  if (model === undefined) return;
  const { stream, muxer } = model.connection as unknown as SocketWriter;
  const flush = muxer._readIncoming.bind(muxer);
  muxer._readIncoming = () => {
    stream.cork();
    flush();
    stream.uncork();
  };
}

/** Demotes golevelup's log lines to debug, because this library reports connections and failures itself. */
function demoteToDebug(logger: LoggerService): LoggerService {
  const debug = (message: unknown): void => {
    logger.debug?.(message);
  };
  return { log: debug, error: debug, warn: debug, debug, verbose: debug };
}
