import { randomUUID } from 'node:crypto';
import type { LoggerService } from '@nestjs/common';
import type { Bus, MessageContract, RequestContract } from '@platform/contracts';
import { inSpan } from '@platform/service-defaults';
import type { Clock } from '@platform/time';
import { BusLink } from './bus/bus-link';
import { ConfirmPublisher } from './bus/confirm-publisher';
import { publishSerialized } from './bus/publish-serialized';
import { declareEndpoint, workQueueOptions } from './bus/queue-topology';
import { SupervisedConsumer } from './bus/supervised-consumer';
import { AnswerSender } from './consuming/answer-sender';
import { DeliveryPipeline } from './consuming/delivery-pipeline';
import type { Endpoint, MessagingCounters } from './consuming/endpoint';
import { delaysOf } from './consuming/retry-decision';
import { createEnvelope, type SerializedEnvelope } from './envelope/create-envelope';
import { hostInfo } from './envelope/host-info';
import { publishSpan } from './envelope/message-span';
import { exchangeName } from './envelope/message-type';
import { messageTraceHeaders } from './envelope/trace-headers';
import { MessageReturnedError } from './errors';
import { BusRequester, type RequestOutcome } from './requesting/bus-requester';

export interface BusRuntimeOptions {
  readonly bus: Bus;
  readonly url: string;
  readonly service: string;
  readonly namespace: string;
  readonly logger: LoggerService;
  readonly clock: Clock;
  readonly counters: MessagingCounters;
}

export interface PublishOptions {
  /** Identity of the message; sending again with the same one is harmless. Random unless given. */
  readonly messageId?: string | undefined;
  readonly correlationId?: string | undefined;
  readonly conversationId?: string | undefined;
  /** Longest wait for the broker's confirm; 2,000 ms unless given. */
  readonly timeoutMs?: number | undefined;
}

const DEFAULT_PUBLISH_TIMEOUT_MS = 2_000;

/** Everything one process does on one bus. */
export class BusRuntime {
  private readonly link: BusLink;
  private readonly publisher: ConfirmPublisher;
  private readonly requester: BusRequester;
  private readonly consumers: SupervisedConsumer[] = [];
  private readonly stopping = new AbortController();

  constructor(private readonly options: BusRuntimeOptions) {
    this.link = new BusLink(options);
    this.publisher = new ConfirmPublisher(this.link);
    this.requester = new BusRequester(this.link, this.publisher, options.namespace, options.clock);
  }

  /** Begins to connect; does not wait for the broker. */
  open(): Promise<void> {
    return this.link.open();
  }

  get isUsable(): boolean {
    return this.link.isUsable;
  }

  /** Queues that should be consumed and at this moment are not. */
  get idleQueues(): string[] {
    return this.consumers.filter((consumer) => !consumer.isConsuming).map((consumer) => consumer.queue);
  }

  /** Starts to consume an endpoint, now or as soon as there is a connection, and again after every interruption. */
  consume(endpoint: Endpoint): void {
    const { namespace, clock, counters } = this.options;
    const { link, publisher } = this;
    const answers = new AnswerSender(link, namespace, clock);
    const dependencies = {
      link,
      namespace,
      publisher,
      answers,
      counters,
      clock,
      stopping: this.stopping.signal,
    };
    const pipeline = new DeliveryPipeline(endpoint, dependencies, () =>
      consumer.reopen('its queues are gone'),
    );
    const topology = {
      queue: endpoint.queue,
      exchanges: endpoint.handlers.map(({ contract }) => exchangeName(namespace, contract.name)),
      delaysMs: delaysOf(endpoint.policy.retryDelaysMs),
    };
    const consumer = new SupervisedConsumer(link, {
      queue: endpoint.queue,
      queueOptions: workQueueOptions(endpoint.queue),
      prefetch: endpoint.prefetch,
      declare: (channel) => declareEndpoint(channel, topology),
      handle: (delivery) => pipeline.handle(delivery),
    });
    this.consumers.push(consumer);
    consumer.start();
  }

  /** @throws as {@link ConfirmPublisher.publish}; {InvalidMessageError} if the message does not satisfy its contract */
  async publish<T>(contract: MessageContract<T>, message: T, options: PublishOptions = {}): Promise<void> {
    const envelope = createEnvelope(contract, message, {
      namespace: this.options.namespace,
      messageId: options.messageId ?? randomUUID(),
      correlationId: options.correlationId,
      conversationId: options.conversationId,
      sentAt: this.options.clock.now(),
      source: this.options.service,
      hostAddress: this.link.hostAddress,
      host: hostInfo(this.options.service),
      headers: messageTraceHeaders(),
    });
    await this.publishEnvelope(envelope, options.timeoutMs);
  }

  /** Publishes in the trace that the envelope's headers carry; what receives it hangs under this publish.
   *  @throws as {@link ConfirmPublisher.publish} */
  async publishEnvelope(envelope: SerializedEnvelope, timeoutMs = DEFAULT_PUBLISH_TIMEOUT_MS): Promise<void> {
    const { bus, counters, logger } = this.options;
    try {
      await inSpan(publishSpan(envelope), async (trace) => {
        const headers = { ...envelope.headers, ...messageTraceHeaders(trace) };
        await publishSerialized(this.publisher, { ...envelope, headers }, timeoutMs);
        logger.log(`bus ${bus}: published ${envelope.exchange} ${envelope.messageId}`);
      });
      counters.published(bus, envelope.exchange);
    } catch (error) {
      if (error instanceof MessageReturnedError) counters.returned(bus, envelope.exchange);
      throw error;
    }
  }

  /** @throws as {@link BusRequester.request} */
  request<T, S, F>(
    contract: RequestContract<T, S, F>,
    message: T,
    options: { timeoutMs: number; correlationId?: string | undefined },
  ): Promise<RequestOutcome<S, F>> {
    return this.requester.request(contract, message, options);
  }

  /** No more deliveries; resolves when those in process are settled. Publishing and requesting still work. */
  async drain(): Promise<void> {
    this.stopping.abort();
    await Promise.all(this.consumers.map((consumer) => consumer.drain()));
  }

  async close(): Promise<void> {
    this.stopping.abort();
    await Promise.allSettled([...this.consumers.map((consumer) => consumer.close()), this.requester.close()]);
    await this.link.close();
  }
}
