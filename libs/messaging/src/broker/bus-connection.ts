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
import { BusUnavailableError } from '../errors';
import { guardHeaders } from './header-guard';

export interface BusConnectionOptions {
  readonly bus: Bus;
  /** May name several hosts. Holds a password; never logged and never part of an error. */
  readonly url: string;
  /** Name of this program; seen in envelopes, reply queues and the broker's management. */
  readonly service: string;
  /** Version of this program; seen in envelopes. */
  readonly version: string;
  /** Namespace of the message types, e.g. `Platform.Contracts`. */
  readonly namespace: string;
  readonly logger: LoggerService;
  readonly clock: Clock;
}

/** A channel that golevelup's connection manager sets up once, as soon as there is a connection. */
export type ManagedChannel = AmqpConnection['managedChannel'];

/**
 * How soon a broker is left that no longer responds: patiently where there is no other, else after 4 to 6 s
 * of silence.
 */
const ONE_BROKER = { heartbeatSeconds: 5, connectTimeoutMs: 5 * SECOND_MS, reconnectSeconds: 1 };
const SEVERAL_BROKERS = { heartbeatSeconds: 2, connectTimeoutMs: 2 * SECOND_MS, reconnectSeconds: 0.2 };
const CLOSE_TIMEOUT_MS = 5 * SECOND_MS;

/**
 * One golevelup connection to one bus. golevelup connects and reconnects it; the owner of a channel recovers
 * that channel.
 */
export class BusConnection {
  /** The broker as MassTransit addresses it, without credentials. */
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
      logger: quiet(logger),
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
   * What the envelope of any message from this process says; of a new one, sent now and in the current trace,
   * unless given.
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

  /** Starts to connect and returns at once: a service starts without its broker. */
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
   * @throws {BusUnavailableError} without a connection, or while the broker blocks it: what is written then
   * would wait in memory
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
   * @throws {BusUnavailableError} without a usable connection, or if it dies meanwhile
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
   * A channel for consuming, set up now or as soon as there is a connection. A set-up that fails is an
   * `error` event.
   */
  manageChannel(name: string, setup: (channel: Channel) => Promise<void>): ManagedChannel {
    return this.amqp.managedConnection.createChannel({ name, confirm: false, setup });
  }

  /** Closes the connection; bounded, because a broker that hangs must not hold the process. */
  async close(): Promise<void> {
    try {
      // Not `amqp.close()`: it waits for a channel first, so a broker that hangs would keep it from ending
      // the reconnects.
      const closing = this.amqp.managedConnection?.close() ?? Promise.resolve();
      const timeoutError = (): Error => new Error(`not closed within ${CLOSE_TIMEOUT_MS} ms`);
      await withTimeout(closing, CLOSE_TIMEOUT_MS, timeoutError);
    } catch (error) {
      this.options.logger.debug?.(`closing bus ${this.options.bus}: ${String(error)}`);
    }
  }

  private onConnected(): void {
    writeTogether(this.amqp.managedConnection.connection);
    guardHeaders(this.amqp.managedConnection.connection);
    this.blockedReason = null;
    this.isReportedDown = false;
    this.options.logger.log(`bus ${this.options.bus} is connected`);
  }

  private onDown(error: Error | undefined): void {
    this.blockedReason = null;
    // One line per outage, not one per attempt to reconnect.
    if (this.isReportedDown) return;
    this.isReportedDown = true;
    this.options.logger.warn(`bus ${this.options.bus} is down: ${error?.message ?? 'closed'}; reconnecting`);
  }
}

/** The parts of amqplib's connection that write. */
interface Writing {
  readonly stream: Writable;
  readonly muxer: { _readIncoming(): void };
}

/**
 * Has the messages of one turn of the event loop leave in one system call. amqplib has no option for it: it
 * writes each by itself.
 */
function writeTogether(model: ChannelModel | undefined): void {
  if (model === undefined) return;
  const { stream, muxer } = model.connection as unknown as Writing;
  const writeWaiting = muxer._readIncoming.bind(muxer);
  muxer._readIncoming = () => {
    stream.cork();
    writeWaiting();
    stream.uncork();
  };
}

/** golevelup's own lines go to debug: this library reports connections and failures itself. */
function quiet(logger: LoggerService): LoggerService {
  const debug = (message: unknown): void => {
    logger.debug?.(message);
  };
  return { log: debug, error: debug, warn: debug, debug, verbose: debug };
}
