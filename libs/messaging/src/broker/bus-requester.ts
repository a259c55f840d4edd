import { randomUUID } from 'node:crypto';
import { InvalidMessageError, readMessage, type RequestContract } from '@platform/contracts';
import { inSpan } from '@platform/service-defaults';
import { SECOND_MS, waitUntil, withTimeout } from '@platform/time';
import type { Channel, ConsumeMessage } from 'amqplib';
import { createEnvelope, exchangeName, isFaultUrn, messageTypeUrn } from '../envelope/create-envelope';
import { requestSpan } from '../envelope/message-trace';
import { type ReceivedEnvelope, tryReadEnvelope } from '../envelope/read-envelope';
import { BusUnavailableError, RequestFaultedError, RequestTimeoutError } from './broker-errors';
import type { BusConnection } from './bus-connection';
import { type ConfirmPublisher, envelopeMessage } from './confirm-publisher';
import { QueueConsumer, type Settlement } from './queue-consumer';
import { quorumQueue, UNLIMITED_DELIVERIES } from './queue-topology';

/** A response: exactly one of the two messages of the contract. */
export type RequestOutcome<S, F> = { readonly succeeded: S } | { readonly failed: F };

export interface RequestOptions {
  /** Maximum wait for the response. */
  readonly timeoutMs: number;
  readonly correlationId?: string | undefined;
}

/**
 * Time that the reply queue survives without a consumer, so that responses sent while the connection is lost
 * still arrive.
 */
const REPLY_QUEUE_LIFETIME_MS = 120 * SECOND_MS;
const READY_TIMEOUT_MS = 2 * SECOND_MS;
const SEND_TIMEOUT_MS = 2 * SECOND_MS;
const READY_POLL_MS = 20;

/**
 * Sends requests over one bus and awaits their responses at this process's reply queue. The reply queue is a
 * quorum queue, because a classic queue is unavailable while its node is down. It expires when it is unused.
 * It is not exclusive, because an exclusive queue is deleted with its connection.
 */
export class BusRequester {
  private readonly pending = new Map<string, (response: ReceivedEnvelope | Error) => void>();
  private replyQueue: string;
  private consumer: QueueConsumer | null = null;

  constructor(
    private readonly connection: BusConnection,
    private readonly publisher: ConfirmPublisher,
  ) {
    this.replyQueue = this.newReplyQueue();
  }

  /**
   * @throws {RequestTimeoutError} if no response arrives in time; the receiver may still carry out the
   * request
   * @throws {RequestFaultedError} if the receiver failed, or its response cannot be read or breaks the
   * contract
   * @throws {MessageReturnedError} if no queue receives these requests
   * @throws {BusUnavailableError | PublishTimeoutError} if the request could not be sent
   * @throws {InvalidMessageError} if the request does not satisfy the contract
   */
  request<T, S, F>(
    contract: RequestContract<T, S, F>,
    message: T,
    options: RequestOptions,
  ): Promise<RequestOutcome<S, F>> {
    return inSpan(requestSpan(exchangeName(this.connection.options.namespace, contract.name)), async () => {
      const requestId = randomUUID();
      try {
        const response = await this.exchange(contract, message, requestId, options);
        return this.outcome(contract, response);
      } finally {
        this.pending.delete(requestId);
      }
    });
  }

  /** The consumer of the reply queue; null before the first request. */
  get replies(): QueueConsumer | null {
    return this.consumer;
  }

  async close(): Promise<void> {
    await this.consumer?.close();
  }

  private exchange<T>(
    contract: RequestContract<T, unknown, unknown>,
    message: T,
    requestId: string,
    { timeoutMs, correlationId }: RequestOptions,
  ): Promise<ReceivedEnvelope | Error> {
    const options = this.connection.envelopeOptions();
    const envelope = createEnvelope(contract, message, {
      ...options,
      requestId,
      correlationId,
      expiresAt: new Date(options.sentAt.getTime() + timeoutMs),
      // MassTransit redeclares the exchange that it responds to, so the address repeats our declaration's
      // arguments.
      responseAddress: `${this.connection.hostAddress}/${this.replyQueue}?durable=true&autodelete=true`,
    });
    const send = async (): Promise<ReceivedEnvelope | Error> => {
      const responded = new Promise<ReceivedEnvelope | Error>((resolve) => {
        this.pending.set(requestId, resolve);
      });
      await this.listen();
      const properties = { correlationId: requestId, replyTo: this.replyQueue };
      await this.publisher.publish(envelopeMessage(envelope, properties), SEND_TIMEOUT_MS);
      return responded;
    };
    return withTimeout(send(), timeoutMs, () => new RequestTimeoutError(contract.name, timeoutMs));
  }

  /** Resolves once the reply queue is being consumed. */
  private async listen(): Promise<void> {
    this.connection.requireUsable();
    this.consumer ??= this.startConsumer();
    const { consumer } = this;
    const limits = { timeoutMs: READY_TIMEOUT_MS, pollMs: READY_POLL_MS };
    if (!(await waitUntil(() => consumer.isConsuming, limits)))
      throw new BusUnavailableError(this.connection.options.bus, 'no reply queue');
  }

  private newReplyQueue(): string {
    return `${this.connection.options.service}.replies.${randomUUID()}`;
  }

  private startConsumer(): QueueConsumer {
    const queue = this.replyQueue;
    const options = quorumQueue(UNLIMITED_DELIVERIES, { 'x-expires': REPLY_QUEUE_LIFETIME_MS });
    const declare = async (channel: Channel): Promise<void> => {
      await Promise.all([
        channel.assertQueue(queue, options),
        channel.assertExchange(queue, 'fanout', { durable: true, autoDelete: true }),
        channel.bindQueue(queue, queue, ''),
      ]);
    };
    const handle = (message: ConsumeMessage): Promise<Settlement> => Promise.resolve(this.receive(message));
    // The next request declares a new reply queue.
    const onSetUpTimeout = (): void => {
      void consumer.close();
      this.consumer = null;
      this.replyQueue = this.newReplyQueue();
    };
    const consumer = new QueueConsumer(this.connection, {
      queue,
      prefetch: 100,
      declare,
      handle,
      onSetUpTimeout,
    });
    consumer.start();
    return consumer;
  }

  private receive({ content, properties }: ConsumeMessage): Settlement {
    const correlationId: unknown = properties.correlationId;
    const response = tryReadEnvelope(content, properties);
    const requestId = (response instanceof Error ? null : response.requestId) ?? correlationId;
    const resolve = this.pending.get(typeof requestId === 'string' ? requestId : '');
    const { logger, bus } = this.connection.options;
    if (response instanceof Error) logger.warn(`bus ${bus}: a response cannot be read: ${response.message}`);
    else if (resolve === undefined)
      logger.debug?.(`bus ${bus}: a response arrived after its request had timed out`);
    resolve?.(response);
    return 'ack';
  }

  private outcome<T, S, F>(
    contract: RequestContract<T, S, F>,
    response: ReceivedEnvelope | Error,
  ): RequestOutcome<S, F> {
    const faulted = (detail: string, options?: ErrorOptions): Error =>
      new RequestFaultedError(contract.name, detail, options);
    if (response instanceof Error)
      throw faulted(`the response cannot be read, ${response.message}`, { cause: response });
    const { succeeded, failed } = contract;
    const isA = ({ name }: { name: string }): boolean =>
      response.messageTypes.some(
        (type) => type === messageTypeUrn(this.connection.options.namespace, name) || type === name,
      );
    try {
      if (isA(succeeded)) return { succeeded: readMessage(succeeded, response.message) };
      if (isA(failed)) return { failed: readMessage(failed, response.message) };
    } catch (error) {
      if (!(error instanceof InvalidMessageError)) throw error;
      throw faulted(error.message, { cause: error });
    }
    const isFault = response.messageTypes.some(isFaultUrn);
    throw faulted(isFault ? 'the receiver failed' : 'the response is of an unknown type');
  }
}
