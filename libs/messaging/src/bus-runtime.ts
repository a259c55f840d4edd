import type { MessageContract } from '@platform/contracts';
import { inSpan } from '@platform/service-defaults';
import { MessageReturnedError } from './broker/broker-errors';
import { BusConnection, type BusConnectionOptions } from './broker/bus-connection';
import { BusRequester } from './broker/bus-requester';
import { ConfirmPublisher, envelopeMessage } from './broker/confirm-publisher';
import { QueueConsumer } from './broker/queue-consumer';
import { declareEndpoint } from './broker/queue-topology';
import { DeliveryPipeline } from './consuming/delivery-pipeline';
import { delaysOf, type Endpoint } from './consuming/endpoint';
import { createEnvelope, exchangeName, type SerializedEnvelope } from './envelope/create-envelope';
import { messageTraceHeaders, publishSpan } from './envelope/message-trace';
import type { CountMessage } from './metrics/message-metrics';

export interface PublishOptions {
  /** Id of the message; publishing again with the same id is harmless. Random unless given. */
  readonly messageId?: string | undefined;
  readonly correlationId?: string | undefined;
  readonly conversationId?: string | undefined;
  /** Time at which the message was first due to be sent; now unless given. */
  readonly sentAt?: Date;
  /** Headers of the trace that the message belongs to; the current trace unless given. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Maximum wait for the broker's confirm; 2,000 ms unless given. */
  readonly timeoutMs?: number | undefined;
}

export interface PublishEnvelopeOptions {
  /** Maximum wait for the broker's confirm; 2,000 ms unless given. */
  readonly timeoutMs?: number | undefined;
  /**
   * Whether to use a channel of its own, for a message that the broker may refuse: a refusal closes the
   * channel and fails every message in flight on it.
   */
  readonly isAlone?: boolean;
}

const DEFAULT_PUBLISH_TIMEOUT_MS = 2_000;
const DEFAULT_PREFETCH = 10;

/** One process's use of one bus: it publishes, sends requests and consumes. */
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

  /** Starts to connect without waiting for the broker. */
  open(): Promise<void> {
    return this.connection.open();
  }

  get isUsable(): boolean {
    return this.connection.isUsable;
  }

  /**
   * Queues that should be consumed but currently are not. The reply queue counts only after its first set-up,
   * which the first request starts and awaits.
   */
  get idleQueues(): string[] {
    const { replies } = this.requester;
    const consumers = replies === null || replies.isStarting ? this.consumers : [...this.consumers, replies];
    return consumers.filter((consumer) => !consumer.isConsuming).map((consumer) => consumer.queue);
  }

  /** Consumes an endpoint, now or as soon as there is a connection, and again after every interruption. */
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
   * Creates the envelope of a message that this process sends.
   * @throws {InvalidMessageError} if the message breaks its contract
   * @throws {MessageTooLargeError} if the envelope is too large
   */
  createEnvelope<T>(contract: MessageContract<T>, message: T, options: PublishOptions): SerializedEnvelope {
    const { correlationId, conversationId } = options;
    const defaults = this.connection.envelopeOptions(options);
    return createEnvelope(contract, message, { ...defaults, correlationId, conversationId });
  }

  /**
   * Publishes in the trace that the envelope's headers carry. The spans of the receivers become children of
   * this publish.
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

  /** Whether the broker responds, with a confirm or a refusal, to a message that is routed to no queue. */
  isResponding(timeoutMs: number): Promise<boolean> {
    return this.publisher.isResponding(timeoutMs);
  }

  /**
   * Stops deliveries and resolves when those in process are settled. Publishing and requesting still work.
   */
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
