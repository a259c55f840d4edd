import type { MessageContract } from '@platform/contracts';
import { inSpan } from '@platform/service-defaults';
import { BusConnection, type BusConnectionOptions } from './broker/bus-connection';
import { BusRequester } from './broker/bus-requester';
import { ConfirmPublisher, envelopeMessage } from './broker/confirm-publisher';
import { QueueConsumer } from './broker/queue-consumer';
import { declareEndpoint } from './broker/queue-topology';
import { DeliveryPipeline } from './consuming/delivery-pipeline';
import { delaysOf, type Endpoint } from './consuming/endpoint';
import { createEnvelope, exchangeName, type SerializedEnvelope } from './envelope/create-envelope';
import { messageTraceHeaders, publishSpan } from './envelope/message-trace';
import { MessageReturnedError } from './errors';
import type { CountMessage } from './message-metrics';

export interface PublishOptions {
  /** Identity of the message; sending again with the same one is harmless. Random unless given. */
  readonly messageId?: string | undefined;
  readonly correlationId?: string | undefined;
  readonly conversationId?: string | undefined;
  /** When it was first to be sent; now unless given. */
  readonly sentAt?: Date;
  /** The trace that it belongs to; the current one unless given. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Longest wait for the broker's confirm; 2,000 ms unless given. */
  readonly timeoutMs?: number | undefined;
}

export interface PublishEnvelopeOptions {
  /** Longest wait for the broker's confirm; 2,000 ms unless given. */
  readonly timeoutMs?: number | undefined;
  /**
   * Over a channel of its own, for a message that the broker may refuse: that closes the channel over
   * everything in flight.
   */
  readonly isAlone?: boolean;
}

const DEFAULT_PUBLISH_TIMEOUT_MS = 2_000;
const DEFAULT_PREFETCH = 10;

/** Everything one process does on one bus. */
export class BusRuntime {
  readonly requester: BusRequester;
  private readonly connection: BusConnection;
  private readonly publisher: ConfirmPublisher;
  private readonly consumers: QueueConsumer[] = [];
  private readonly stopping = new AbortController();

  constructor(
    options: BusConnectionOptions,
    private readonly count: CountMessage,
  ) {
    this.connection = new BusConnection(options);
    this.publisher = new ConfirmPublisher(this.connection);
    this.requester = new BusRequester(this.connection, this.publisher);
  }

  /** Starts to connect; does not wait for the broker. */
  open(): Promise<void> {
    return this.connection.open();
  }

  get isUsable(): boolean {
    return this.connection.isUsable;
  }

  /**
   * Queues that should be consumed and are not at this moment. The reply queue is one of them once it has
   * been set up: that begins with the first request, which waits for it.
   */
  get idleQueues(): string[] {
    const { replies } = this.requester;
    const consumers = replies === null || replies.isStarting ? this.consumers : [...this.consumers, replies];
    return consumers.filter((consumer) => !consumer.isConsuming).map((consumer) => consumer.queue);
  }

  /**
   * Starts to consume an endpoint, now or as soon as there is a connection, and again after every
   * interruption.
   */
  consume(endpoint: Endpoint): void {
    const { connection, publisher, count } = this;
    const { queue, prefetch = DEFAULT_PREFETCH, singleActiveConsumer, handlers } = endpoint;
    const pipeline = new DeliveryPipeline(endpoint, {
      connection,
      publisher,
      count,
      stopping: this.stopping.signal,
      onBrokenTopology: () => consumer.reopen('its queues are gone'),
    });
    const exchanges = handlers.map(({ contract }) =>
      exchangeName(connection.options.namespace, contract.name),
    );
    const topology = { queue, exchanges, delaysMs: delaysOf(endpoint), singleActiveConsumer };
    const consumer = new QueueConsumer(connection, {
      queue,
      prefetch,
      declare: (channel) => declareEndpoint(channel, topology),
      handle: (delivery) => pipeline.handle(delivery),
    });
    this.consumers.push(consumer);
    consumer.start();
  }

  /**
   * The envelope of a message that this process sends now.
   * @throws {InvalidMessageError} if the message breaks its contract
   */
  createEnvelope<T>(contract: MessageContract<T>, message: T, options: PublishOptions): SerializedEnvelope {
    const { correlationId, conversationId } = options;
    const defaults = this.connection.envelopeOptions(options);
    return createEnvelope(contract, message, { ...defaults, correlationId, conversationId });
  }

  /**
   * Publishes in the trace that the envelope's headers carry; the spans of its receivers hang under this
   * publish.
   * @throws as {@link ConfirmPublisher.publish}
   */
  async publish(
    envelope: SerializedEnvelope,
    { timeoutMs = DEFAULT_PUBLISH_TIMEOUT_MS, isAlone = false }: PublishEnvelopeOptions = {},
  ): Promise<void> {
    const { bus, logger } = this.connection.options;
    const { exchange, messageId } = envelope;
    try {
      await inSpan(publishSpan(envelope), async (trace) => {
        const headers = { ...envelope.headers, ...messageTraceHeaders(trace) };
        const message = envelopeMessage({ ...envelope, headers });
        await (isAlone
          ? this.publisher.publishAlone(message, timeoutMs)
          : this.publisher.publish(message, timeoutMs));
        logger.log(`bus ${bus}: published ${exchange} ${messageId}`);
      });
      this.count('published', { bus, message: exchange });
    } catch (error) {
      if (error instanceof MessageReturnedError) this.count('returned', { bus, message: exchange });
      throw error;
    }
  }

  /** Whether the broker still confirms what no queue is to take. */
  isResponding(timeoutMs: number): Promise<boolean> {
    return this.publisher.isResponding(timeoutMs);
  }

  /** Stops deliveries; resolves when those in process are settled. Publishing and requesting still work. */
  async drain(): Promise<void> {
    this.stopping.abort();
    await Promise.all(this.consumers.map((consumer) => consumer.drain()));
  }

  async close(): Promise<void> {
    this.stopping.abort();
    await Promise.allSettled([...this.consumers.map((consumer) => consumer.close()), this.requester.close()]);
    await this.connection.close();
  }
}
