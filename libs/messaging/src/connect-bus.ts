import { Logger, type LoggerService } from '@nestjs/common';
import type { Bus, MessageContract, RequestContract } from '@platform/contracts';
import { SYSTEM_CLOCK, waitUntil } from '@platform/time';
import { BusUnavailableError } from './broker/broker-errors';
import type { RequestOptions, RequestOutcome } from './broker/bus-requester';
import { BusRuntime, type PublishOptions } from './bus-runtime';
import {
  type DeliveryContext,
  type EndpointHandler,
  type QueueOptions,
  responseOf,
} from './consuming/endpoint';

export interface ConnectBusOptions {
  readonly url: string;
  /** Name of this program, used in envelopes and as the connection's name at the broker. */
  readonly name: string;
  /** Version of this program, written into envelopes; `0.0.0` unless given. */
  readonly version?: string;
  /** Name of the bus for logs and errors only; `main` unless given. */
  readonly bus?: Bus;
  /** Namespace of the message types; `Platform.Contracts` unless given. */
  readonly namespace?: string;
  /** Maximum wait for the first connection; 30,000 ms unless given. */
  readonly timeoutMs?: number;
  readonly logger?: LoggerService;
}

const POLL_MS = 25;
const CONSUME_TIMEOUT_MS = 10_000;

/**
 * Connects a plain Node program to a bus. From then on the connection recovers by itself.
 * @throws {BusUnavailableError} if the broker cannot be reached within the timeout
 */
export async function connectBus(options: ConnectBusOptions): Promise<PlainBus> {
  const {
    bus = 'main',
    url,
    name,
    namespace = 'Platform.Contracts',
    timeoutMs = 30_000,
    version = '0.0.0',
  } = options;
  const logger = options.logger ?? new Logger(name);
  const runtime = new BusRuntime(
    { bus, url, service: name, version, namespace, logger, clock: SYSTEM_CLOCK },
    () => undefined,
  );
  await runtime.open();
  if (await waitUntil(() => runtime.isUsable, { timeoutMs, pollMs: POLL_MS })) return new PlainBus(runtime);
  await runtime.close();
  throw new BusUnavailableError(bus, 'no connection');
}

/**
 * A bus for a program without Nest. Envelopes, queues, retries and recovery are the same, but there is no
 * inbox, so a handler may receive a message more than once.
 */
export class PlainBus {
  constructor(private readonly runtime: BusRuntime) {}

  /** @throws as {@link MessagePublisher.publish} */
  async publish<T>(contract: MessageContract<T>, message: T, options: PublishOptions = {}): Promise<void> {
    const envelope = this.runtime.createEnvelope(contract, message, options);
    await this.runtime.publish(envelope, { timeoutMs: options.timeoutMs });
  }

  /** @throws as {@link RequestClient.request} */
  request<T, S, F>(
    contract: RequestContract<T, S, F>,
    message: T,
    options: RequestOptions,
  ): Promise<RequestOutcome<S, F>> {
    return this.runtime.requester.request(contract, message, options);
  }

  /** Resolves once the queue is being consumed, or after 10 s even if it is not. */
  consume<T>(
    contract: MessageContract<T>,
    options: QueueOptions,
    handler: (message: T, context: DeliveryContext) => Promise<void>,
  ): Promise<void> {
    const process: EndpointHandler['process'] = async (message, context) => {
      await handler(message as T, context);
      return null;
    };
    return this.start(options, { contract, isRequest: false, process });
  }

  /** Responds to requests; otherwise like {@link consume}. */
  respond<T, S, F>(
    contract: RequestContract<T, S, F>,
    options: QueueOptions,
    handler: (message: T, context: DeliveryContext) => Promise<RequestOutcome<S, F>>,
  ): Promise<void> {
    const process: EndpointHandler['process'] = async (message, context) =>
      responseOf(contract, await handler(message as T, context));
    return this.start(options, { contract, isRequest: true, process });
  }

  /** Whether the bus is connected and every queue is being consumed. */
  isReady(): boolean {
    return this.runtime.isUsable && this.runtime.idleQueues.length === 0;
  }

  /** Stops consuming, finishes the deliveries in process and closes the connection. */
  async close(): Promise<void> {
    await this.runtime.drain();
    await this.runtime.close();
  }

  private async start(options: QueueOptions, handler: EndpointHandler): Promise<void> {
    this.runtime.consume({ ...options, handlers: [handler], isOutage: () => false });
    const isConsumed = (): boolean => !this.runtime.idleQueues.includes(options.queue);
    await waitUntil(isConsumed, { timeoutMs: CONSUME_TIMEOUT_MS, pollMs: POLL_MS });
  }
}
