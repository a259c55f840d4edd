import { AmqpConnection } from '@golevelup/nestjs-rabbitmq';
import type { LoggerService } from '@nestjs/common';
import type { Bus } from '@platform/contracts';
import { SECOND_MS } from '@platform/time';
import type { ChannelModel } from 'amqplib';
import { hostAddress } from '../envelope/address';
import { BusUnavailableError } from '../errors';
import { within } from './within';

export interface BusLinkOptions {
  readonly bus: Bus;
  /** Holds a password, so it is never logged and never part of an error. */
  readonly url: string;
  /** Shown as the connection's name in the broker's management. */
  readonly service: string;
  readonly logger: LoggerService;
}

const CONNECT_TIMEOUT_MS = 5 * SECOND_MS;
const CLOSE_TIMEOUT_MS = 5 * SECOND_MS;

/** One named golevelup connection. It opens channels of its own on it and never uses golevelup's default channel, whose death
 *  nobody would notice. The connection comes back by itself; channels are their owner's business. */
export class BusLink {
  readonly amqp: AmqpConnection;
  readonly bus: Bus;
  readonly service: string;
  readonly logger: LoggerService;
  /** The broker as MassTransit addresses it, without credentials. */
  readonly hostAddress: string;
  private blockedBecause: string | null = null;
  private reportedDown = false;

  /** @throws {Error} if the URL is not an AMQP URL. */
  constructor(options: BusLinkOptions) {
    this.bus = options.bus;
    this.service = options.service;
    this.logger = options.logger;
    this.hostAddress = hostAddress(options.url);
    this.amqp = new AmqpConnection({
      name: options.bus,
      uri: options.url,
      enableDirectReplyTo: false,
      // Bodies are read by the delivery pipeline, where a body that is no JSON has somewhere to go.
      deserializer: (content) => content,
      logger: quiet(options.logger),
      connectionInitOptions: {
        wait: false,
        skipConnectionFailedLogging: true,
        skipDisconnectFailedLogging: true,
      },
      connectionManagerOptions: {
        heartbeatIntervalInSeconds: 5,
        reconnectTimeInSeconds: 1,
        connectionOptions: {
          timeout: CONNECT_TIMEOUT_MS,
          noDelay: true,
          clientProperties: { connection_name: `${options.service} (${options.bus})` },
        },
      },
    });
  }

  /** Begins to connect and returns; a broker that is down keeps nobody from starting. */
  async open(): Promise<void> {
    await this.amqp.init();
    const connection = this.amqp.managedConnection;
    connection.on('connect', () => this.onConnected());
    connection.on('disconnect', ({ err }: { err?: Error }) => this.onDown(err));
    connection.on('connectFailed', ({ err }: { err?: Error }) => this.onDown(err));
    connection.on('blocked', ({ reason }) => {
      this.blockedBecause = reason;
      this.logger.warn(`bus ${this.bus} is blocked by the broker: ${reason}`);
    });
    connection.on('unblocked', () => {
      this.blockedBecause = null;
    });
  }

  /** Whether messages can be sent now. */
  get isUsable(): boolean {
    return this.amqp.managedConnection?.isConnected() === true && this.blockedBecause === null;
  }

  /** The live connection. @throws {BusUnavailableError} if there is none, or the broker has blocked it. */
  getConnection(): ChannelModel {
    const connection = this.amqp.managedConnection?.connection;
    if (connection === undefined) throw new BusUnavailableError(this.bus, 'not connected');
    if (this.blockedBecause !== null)
      throw new BusUnavailableError(this.bus, `blocked, ${this.blockedBecause}`);
    return connection;
  }

  /** Closes the connection; bounded, since a broker that hangs must not keep the process. */
  async close(): Promise<void> {
    const closing = this.amqp.managedConnection?.close() ?? Promise.resolve();
    try {
      await within(closing, CLOSE_TIMEOUT_MS, () => new Error(`no answer within ${CLOSE_TIMEOUT_MS} ms`));
    } catch (error) {
      this.logger.debug?.(`closing bus ${this.bus}: ${String(error)}`);
    }
  }

  private onConnected(): void {
    this.blockedBecause = null;
    this.reportedDown = false;
    this.logger.log(`bus ${this.bus} is connected`);
  }

  private onDown(error: Error | undefined): void {
    this.blockedBecause = null;
    // One line per outage, not one per attempt to reconnect.
    if (this.reportedDown) return;
    this.reportedDown = true;
    this.logger.warn(`bus ${this.bus} is down: ${error?.message ?? 'closed'}; reconnecting`);
  }
}

/** golevelup reports every channel and, with its stack, every failed handler; the pipeline reports those itself. */
function quiet(logger: LoggerService): LoggerService {
  const debug = (message: unknown): void => {
    logger.debug?.(message);
  };
  return { log: debug, error: debug, warn: debug, debug, verbose: debug };
}
