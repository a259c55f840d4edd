import { randomUUID } from 'node:crypto';
import { InvalidMessageError, readMessage, type RequestContract } from '@platform/contracts';
import { inSpan } from '@platform/service-defaults';
import { type Clock, SECOND_MS } from '@platform/time';
import type { Channel, ConsumeMessage } from 'amqplib';
import type { BusLink } from '../bus/bus-link';
import type { ConfirmPublisher } from '../bus/confirm-publisher';
import { type Settlement, SupervisedConsumer } from '../bus/supervised-consumer';
import { within } from '../bus/within';
import { createEnvelope } from '../envelope/create-envelope';
import { hostInfo } from '../envelope/host-info';
import { requestSpan } from '../envelope/message-span';
import { exchangeName, isFaultUrn, messageTypeUrn } from '../envelope/message-type';
import { type ReceivedEnvelope, readEnvelope } from '../envelope/read-envelope';
import { messageTraceHeaders } from '../envelope/trace-headers';
import {
  BusUnavailableError,
  RequestFaultedError,
  RequestTimeoutError,
  UnreadableMessageError,
} from '../errors';
import { publishSerialized } from '../bus/publish-serialized';

/** What came back: exactly one of the two answers of the contract. */
export type RequestOutcome<S, F> = { readonly succeeded: S } | { readonly failed: F };

/** The reply queue outlives a lost connection by this long, so that answers given meanwhile still arrive. */
const REPLY_QUEUE_LIFETIME_MS = 120 * SECOND_MS;
const READY_TIMEOUT_MS = 2 * SECOND_MS;
const SEND_TIMEOUT_MS = 2 * SECOND_MS;
const READY_POLL_MS = 20;

/** Sends requests over one bus and waits for their answers at a reply queue of this process. The queue is durable and expires by
 *  itself: RabbitMQ 4.3 refuses transient queues that are not exclusive, and an exclusive one dies with its connection. */
export class BusRequester {
  private readonly pending = new Map<string, (envelope: ReceivedEnvelope) => void>();
  private readonly replyQueue: string;
  private consumer: SupervisedConsumer | null = null;

  constructor(
    private readonly link: BusLink,
    private readonly publisher: ConfirmPublisher,
    private readonly namespace: string,
    private readonly clock: Clock,
  ) {
    this.replyQueue = `${link.service}.replies.${randomUUID()}`;
  }

  /** @throws {RequestTimeoutError} without an answer in time; it may still be carried out
   *  @throws {RequestFaultedError} if the other side broke down over it, or its answer does not satisfy the contract
   *  @throws {MessageReturnedError} if nobody takes such requests
   *  @throws {BusUnavailableError | PublishTimeoutError} if it could not be sent
   *  @throws {InvalidMessageError} if the request does not satisfy the contract */
  request<T, S, F>(
    contract: RequestContract<T, S, F>,
    message: T,
    options: { timeoutMs: number; correlationId?: string | undefined },
  ): Promise<RequestOutcome<S, F>> {
    return inSpan(requestSpan(exchangeName(this.namespace, contract.name)), () =>
      this.ask(contract, message, options),
    );
  }

  /** Whether answers can be received now; true as long as nothing was requested. */
  get isListening(): boolean {
    return this.consumer?.isConsuming ?? true;
  }

  async close(): Promise<void> {
    await this.consumer?.close();
  }

  private async ask<T, S, F>(
    contract: RequestContract<T, S, F>,
    message: T,
    { timeoutMs, correlationId }: { timeoutMs: number; correlationId?: string | undefined },
  ): Promise<RequestOutcome<S, F>> {
    const requestId = randomUUID();
    const sentAt = this.clock.now();
    const envelope = createEnvelope(contract, message, {
      namespace: this.namespace,
      messageId: randomUUID(),
      requestId,
      correlationId,
      sentAt,
      expiresAt: new Date(sentAt.getTime() + timeoutMs),
      // MassTransit declares the exchange it answers to, so the address must say how ours was declared.
      responseAddress: `${this.link.hostAddress}/${this.replyQueue}?durable=true&autodelete=true`,
      source: this.link.service,
      hostAddress: this.link.hostAddress,
      host: hostInfo(this.link.service),
      headers: messageTraceHeaders(),
    });
    const answered = new Promise<ReceivedEnvelope>((resolve) => this.pending.set(requestId, resolve));
    try {
      const exchange = async (): Promise<ReceivedEnvelope> => {
        await this.listen();
        const properties = { correlationId: requestId, replyTo: this.replyQueue };
        await publishSerialized(this.publisher, envelope, SEND_TIMEOUT_MS, properties);
        return answered;
      };
      const reply = await within(
        exchange(),
        timeoutMs,
        () => new RequestTimeoutError(contract.name, timeoutMs),
      );
      return this.outcome(contract, reply);
    } finally {
      this.pending.delete(requestId);
    }
  }

  private async listen(): Promise<void> {
    this.link.getConnection();
    this.consumer ??= this.startConsumer();
    const deadlineMs = this.clock.monotonicMs() + READY_TIMEOUT_MS;
    while (!this.consumer.isConsuming) {
      if (this.clock.monotonicMs() > deadlineMs)
        throw new BusUnavailableError(this.link.bus, 'no reply queue');
      await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS));
    }
  }

  private startConsumer(): SupervisedConsumer {
    const queue = this.replyQueue;
    const queueOptions = {
      durable: true,
      arguments: { 'x-queue-type': 'classic', 'x-expires': REPLY_QUEUE_LIFETIME_MS },
    };
    const declare = async (channel: Channel): Promise<void> => {
      await Promise.all([
        channel.assertQueue(queue, queueOptions),
        channel.assertExchange(queue, 'fanout', { durable: true, autoDelete: true }),
        channel.bindQueue(queue, queue, ''),
      ]);
    };
    const handle = (message: ConsumeMessage): Promise<Settlement> => Promise.resolve(this.receive(message));
    const consumer = new SupervisedConsumer(this.link, {
      queue,
      queueOptions,
      prefetch: 100,
      declare,
      handle,
    });
    consumer.start();
    return consumer;
  }

  private receive(message: ConsumeMessage): Settlement {
    try {
      const envelope = readEnvelope(message.content, message.properties);
      const correlationId: unknown = message.properties.correlationId;
      const requestId = envelope.requestId ?? (typeof correlationId === 'string' ? correlationId : '');
      const resolve = this.pending.get(requestId);
      if (resolve === undefined) this.link.logger.debug?.(`bus ${this.link.bus}: an answer came too late`);
      resolve?.(envelope);
    } catch (error) {
      if (!(error instanceof UnreadableMessageError)) throw error;
      this.link.logger.warn(`bus ${this.link.bus}: an unreadable answer was dropped: ${error.message}`);
    }
    return 'ack';
  }

  private outcome<T, S, F>(
    contract: RequestContract<T, S, F>,
    reply: ReceivedEnvelope,
  ): RequestOutcome<S, F> {
    const { succeeded, failed } = contract;
    const isA = ({ name }: { name: string }): boolean =>
      reply.messageTypes.some((type) => type === messageTypeUrn(this.namespace, name) || type === name);
    try {
      if (isA(succeeded)) return { succeeded: readMessage(succeeded, reply.message) };
      if (isA(failed)) return { failed: readMessage(failed, reply.message) };
    } catch (error) {
      if (!(error instanceof InvalidMessageError)) throw error;
      throw new RequestFaultedError(contract.name, error.message, { cause: error });
    }
    const detail = reply.messageTypes.some(isFaultUrn)
      ? 'the receiver failed'
      : 'the answer is of an unknown type';
    throw new RequestFaultedError(contract.name, detail);
  }
}
